"""Kafka Connect's `/connectors/{name}/offsets` (KIP-875), with a history, dry runs, an undo and an import beside it.

Reading is always possible. Writing is refused unless the connector is STOPPED, and keeps it stopped meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Query, Request, Response

from tailrace.connector.offsets import editor, takeover
from tailrace.errors import DefiniteError
from tailrace.lake.records.offset_history import EditState, OffsetEdit
from tailrace.model.lake_address import LakeAddress
from tailrace.offsets.connect import StoredOffset, choose, read_offsets
from tailrace.offsets.kinds import describe
from tailrace.offsets.layout import OffsetFaultsError
from tailrace.server.api.offsets.layouts import invalid
from tailrace.server.api.offsets.models import (
    EXAMPLE,
    AssessmentInfo,
    EditInfo,
    Message,
    OffsetEntry,
    OffsetsInfo,
    TakeoverInfo,
)
from tailrace.server.api.parts import GetSupervisor, Name, known_source, required_source, version_in
from tailrace.server.api.who import Who
from tailrace.server.errors import RequestConflictError, RequestError
from tailrace.server.supervisor.door import ConnectorHost
from tailrace.source.door.source import Source
from tailrace.source.kinds import codec_of, source_of, words_of

router = APIRouter(prefix="/connectors/{name}/offsets", tags=["offsets"])
IfMatch = Annotated[str | None, Header(description="Only if no other edit came since this ETag; 409 otherwise.")]
DryRun = Annotated[bool, Query(description="Change nothing; say what would follow. Possible in any state.")]
Offsets = Annotated[dict[str, Any], Body(examples=[{"offsets": [EXAMPLE]}])]
STORED_FORMS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The answer of `GET /connectors/NAME/offsets`, records of the offsets topic a line each, or the "
        "file of a FileOffsetBackingStore.",
        "content": {
            "application/json": {"schema": {"type": "object"}, "example": {"offsets": [EXAMPLE]}},
            "text/plain": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


async def _content(request: Request) -> bytes:
    return await request.body()


def _stored(
    content: Annotated[bytes, Depends(_content)],
    connector: Annotated[str | None, Query(description="The connector's name, where there are several.")] = None,
    server: Annotated[str | None, Query(description="Its topic.prefix, where there are several.")] = None,
) -> StoredOffset:
    return choose(read_offsets(content), connector, server)


@router.get("")
def get_offsets(supervisor: GetSupervisor, name: Name, response: Response) -> OffsetsInfo:
    """How far the connector has got, in Debezium's layout. An edit that waits for the next start shows already."""
    found = supervisor.configuration(name)
    if supervisor.lake_home(name).source() is None:
        response.headers["etag"] = '"0"'
        return OffsetsInfo(offsets=[])
    read = editor.read(found.settings.lake, server=found.server)
    response.headers["etag"] = f'"{read.version}"'
    return OffsetsInfo(offsets=[OffsetEntry.model_validate(each) for each in read.entries])


@router.patch("")
def alter_offsets(
    supervisor: GetSupervisor, name: Name, body: Offsets, who: Who, dry_run: DryRun = False, if_match: IfMatch = None
) -> AssessmentInfo | Message:
    """Set the offsets of a stopped connector; the next start takes them up. What the source cannot send is refused, and
    what would be skipped is copied again."""
    if dry_run:
        found = supervisor.configuration(name)
        with supervisor.asking_source(), _answering_faults():
            return AssessmentInfo.of(
                editor.assess(_lake(supervisor, name), body, known_source(supervisor, name), found.server)
            )
    with supervisor.asking_source(), _stopped(supervisor, name) as server:
        lake = _lake(supervisor, name)
        edit = editor.apply(lake, body, who, known_source(supervisor, name), server, version_in(if_match, "offsets"))
    return _message("altered", edit)


@router.delete("")
def reset_offsets(
    supervisor: GetSupervisor, name: Name, who: Who, dry_run: DryRun = False, if_match: IfMatch = None
) -> AssessmentInfo | Message:
    """Forget how far a stopped connector has got: the next start copies every table again."""
    if dry_run:
        found = supervisor.configuration(name)
        return AssessmentInfo.of(editor.assess_reset(_lake(supervisor, name), found.server))
    with _stopped(supervisor, name) as server:
        edit = editor.reset(_lake(supervisor, name), who, server, version_in(if_match, "offsets"))
    return _message("reset", edit)


@router.get("/history")
def get_offsets_history(supervisor: GetSupervisor, name: Name) -> list[EditInfo]:
    """Every edit, oldest first: who, when, before, after."""
    if supervisor.lake_home(name).source() is None:
        return []
    return [EditInfo.of(edit) for edit in editor.history(supervisor.lake(name).lake)]


@router.post("/undo")
def undo_offsets(
    supervisor: GetSupervisor, name: Name, who: Who, dry_run: DryRun = False, if_match: IfMatch = None
) -> EditInfo | Message:
    """Take the last edit back, where that is still possible. A dry run answers the edit that would do so."""
    if dry_run:
        found = supervisor.configuration(name)
        return EditInfo.of(editor.planned_undo(supervisor.lake(name).lake, who, found.server))
    with _stopped(supervisor, name) as server:
        edit = editor.undo(supervisor.lake(name).lake, who, server, version_in(if_match, "offsets"))
    return _message("taken back", edit)


@router.post("/import", openapi_extra=STORED_FORMS)
def import_offsets(
    supervisor: GetSupervisor,
    name: Name,
    stored: Annotated[StoredOffset, Depends(_stored)],
    who: Who,
    dry_run: DryRun = False,
    if_match: IfMatch = None,
) -> TakeoverInfo | Message:
    """Take over from a Debezium connector that has been stopped: what it has at the source, which the configuration
    names, from exactly where it was. Rows that the lake lacks come by windows."""
    lake = supervisor.lake_home(name).lake
    with supervisor.asking_source(), _answering_faults():
        source = _others_source(supervisor, name)
        if dry_run:
            return TakeoverInfo.of(takeover.plan(lake, stored, source))
    with supervisor.asking_source(), _stopped(supervisor, name):
        edit = takeover.take_over(lake, stored, source, who, version=version_in(if_match, "offsets"))
    return _message("imported", edit)


@router.get("/schema")
def get_offsets_schema(supervisor: GetSupervisor, name: Name) -> dict[str, Any]:
    """The layout of the offsets, as JSON schema."""
    return describe(codec_of(supervisor.configuration(name).kind).offset_words.layout)


def _lake(supervisor: ConnectorHost, name: str) -> LakeAddress:
    """Where Kafka Connect has routes too, its clients take 409 for a rebalance and try again and again."""
    try:
        return supervisor.lake(name).lake
    except RequestConflictError as error:
        raise RequestError(error.message, error.hint) from None


@contextmanager
def _stopped(supervisor: ConnectorHost, name: str) -> Iterator[str]:
    """The name that the connector's partition has; it stays stopped inside."""
    found = supervisor.configuration(name)
    with supervisor.kept_stopped(name), _answering_faults():
        yield found.server


@contextmanager
def _answering_faults() -> Iterator[None]:
    try:
        yield
    except OffsetFaultsError as error:
        raise invalid(error) from None
    except (editor.RunningError, editor.EditConflictError) as error:
        raise RequestConflictError(error.message, error.hint) from None


def _others_source(supervisor: ConnectorHost, name: str) -> Source:
    """Of what is to be taken over. The configuration names it, so that no other connector gets it too."""
    found = supervisor.configuration(name)
    required_source(supervisor, name)
    try:
        words_of(found.kind).require_adoptable(found.source_options)
    except DefiniteError as error:
        hint = f"PATCH /connectors/{name}/config with {{{error.hint}}}, or what the other one named"
        raise RequestError(error.message, hint) from None
    return source_of(found.dsn, **takeover.source_arguments(found.settings.lake, found.kind, found.source_options))


def _message(what: str, edit: OffsetEdit) -> Message:
    waits = "the next start takes it up" if edit.state is EditState.WAITING else "it is done"
    return Message(
        message=f"The offsets of this connector have been {what} (edit {edit.version}): {edit.says}; {waits}"
    )
