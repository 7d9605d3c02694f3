"""Kafka Connect's `/connectors/{name}/offsets` (KIP-875), with a history, a dry run and an undo beside it.

Reading is always possible. Writing is refused unless the connector is STOPPED, and keeps it stopped meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from tailrace.connector import offsets
from tailrace.lake.offsets import EditKind, EditState, OffsetEdit
from tailrace.offsets.kinds import describe
from tailrace.offsets.layout import OffsetFaultsError
from tailrace.server.api.parts import GetSupervisor, Name
from tailrace.server.errors import ConflictError, RequestError
from tailrace.server.supervisor import Supervisor
from tailrace.source.door import Source
from tailrace.source.kinds import source_of

KIND = "postgres"

router = APIRouter(tags=["offsets"])
IfMatch = Annotated[str | None, Header(description="Only if no other edit came since this ETag; 409 otherwise.")]
Offsets = Annotated[dict[str, Any], Body(examples=[{"offsets": [{"partition": {"server": "shop"}, "offset": None}]}])]


class Message(BaseModel):
    """What was done, and what follows from it."""

    message: str


class EditInfo(BaseModel):
    """One edit of the offsets."""

    version: int
    kind: EditKind
    state: EditState
    who: str
    time: datetime
    before: list[dict[str, Any]]
    after: list[dict[str, Any]]
    undoes: int | None
    consequence: str


@router.get("/connectors/{name}/offsets")
def get_offsets(supervisor: GetSupervisor, name: Name, response: Response) -> dict[str, list[dict[str, Any]]]:
    """How far the connector has got, in Debezium's layout. An edit that waits for the next start shows already."""
    found = supervisor.configuration(name)
    if supervisor.lake_home(name).source() is None:
        return {"offsets": []}
    read = offsets.read(found.settings.lake, server=found.server)
    response.headers["etag"] = f'"{read.version}"'
    return read.to_wire()


@router.patch("/connectors/{name}/offsets", response_model=None, responses={200: {"model": Message}})
def alter_offsets(
    supervisor: GetSupervisor,
    name: Name,
    body: Offsets,
    request: Request,
    dry_run: Annotated[bool, Query(description="Change nothing; say what would follow.")] = False,
    if_match: IfMatch = None,
) -> Message | JSONResponse:
    """Set the offsets of a stopped connector; the next start takes them up. What the source cannot send is refused, and
    what would be skipped is copied again."""
    if dry_run:
        found = supervisor.configuration(name)
        lake = supervisor.lake(name).path
        with _explained():
            assessed = offsets.assess(lake, body, _source(supervisor, name), found.server)
        return JSONResponse(assessed.to_json())
    with _stopped(supervisor, name) as server:
        lake = supervisor.lake(name).path
        edit = offsets.apply(lake, body, _who(request), _source(supervisor, name), server, _version(if_match))
    return Message(message=_told("altered", edit))


@router.delete("/connectors/{name}/offsets")
def reset_offsets(supervisor: GetSupervisor, name: Name, request: Request, if_match: IfMatch = None) -> Message:
    """Forget how far a stopped connector has got: the next start copies every table again."""
    with _stopped(supervisor, name) as server:
        edit = offsets.reset(supervisor.lake(name).path, _who(request), server, _version(if_match))
    return Message(message=_told("reset", edit))


@router.get("/connectors/{name}/offsets/history")
def get_offsets_history(supervisor: GetSupervisor, name: Name) -> list[EditInfo]:
    """Every edit, oldest first: who, when, before, after."""
    if supervisor.lake_home(name).source() is None:
        return []
    return [_info(edit) for edit in offsets.history(supervisor.lake(name).path)]


@router.post("/connectors/{name}/offsets/undo")
def undo_offsets(supervisor: GetSupervisor, name: Name, request: Request, if_match: IfMatch = None) -> Message:
    """Take the last edit back, where that is still possible."""
    with _stopped(supervisor, name) as server:
        edit = offsets.undo(supervisor.lake(name).path, _who(request), server, _version(if_match))
    return Message(message=_told("taken back", edit))


@router.get("/connectors/{name}/offsets/schema")
def get_offsets_schema(supervisor: GetSupervisor, name: Name) -> dict[str, Any]:
    """The layout of the offsets, as JSON schema."""
    supervisor.require(name)
    return describe(KIND)


@contextmanager
def _stopped(supervisor: Supervisor, name: str) -> Iterator[str]:
    """The name that the connector's partition has; it stays stopped inside."""
    found = supervisor.configuration(name)
    with supervisor.kept_stopped(name), _explained():
        yield found.server


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OffsetFaultsError as error:
        listed = "\n".join(f"{fault.field}: {fault.message} ({fault.rule})" for fault in error.faults)
        raise RequestError(f"the offsets are not valid:\n{listed}") from None
    except (offsets.RunningError, offsets.ConflictError) as error:
        raise ConflictError(error.message, error.hint) from None


def _source(supervisor: Supervisor, name: str) -> Source:
    found = supervisor.configuration(name)
    return source_of(found.dsn, **found.source_options)


def _told(what: str, edit: OffsetEdit) -> str:
    waits = "the next start takes it up" if edit.state is EditState.WAITING else "it is done"
    return f"The offsets of this connector have been {what} (edit {edit.version}): {edit.says}; {waits}"


def _who(request: Request) -> str:
    return request.client.host if request.client else "REST"


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RequestError("If-Match is no ETag of offsets", "send the ETag that GET gave")
    return int(text)


def _info(edit: OffsetEdit) -> EditInfo:
    return EditInfo(
        version=edit.version,
        kind=edit.kind,
        state=edit.state,
        who=edit.who,
        time=datetime.fromtimestamp(edit.time_us / 1e6, UTC),
        before=[dict(each) for each in edit.before],
        after=[dict(each) for each in edit.after],
        undoes=edit.undoes,
        consequence=edit.says,
    )
