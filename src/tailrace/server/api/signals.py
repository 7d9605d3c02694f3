"""What can be asked of a connector while it runs: signals, and the copies that most of them are about."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from tailrace.connector.signals.sender import lake_signals, signal
from tailrace.connector.status import stored_progress
from tailrace.lake.home import LakeHome
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.signal import DATA_CHARACTERS_MAX, ID_CHARACTERS_MAX, SignalRecord, SignalState
from tailrace.model.table_state import COPYING
from tailrace.server.api.parts import GetParts, GetSupervisor, Name
from tailrace.server.api.progress.models import CopyProgress
from tailrace.server.errors import NotFoundError
from tailrace.server.moments import moment
from tailrace.server.supervisor.supervisor import Supervisor

EXECUTE = "execute-snapshot"

router = APIRouter(tags=["signals and snapshots"])


class SignalRequest(BaseModel):
    """A signal in Debezium's layout."""

    id: str | None = Field(None, max_length=ID_CHARACTERS_MAX, description="The same one twice does nothing.")
    type: str = Field(examples=[EXECUTE], max_length=100)
    data: dict[str, Any] | None = Field(None, examples=[{"data-collections": ["public.orders"]}])


class SignalInfo(BaseModel):
    """A signal and what became of it."""

    id: str
    type: str
    data: str
    channel: str
    state: SignalState
    result: str | None
    received: datetime
    updated: datetime


class Condition(BaseModel):
    """Which rows of a table are to be copied."""

    model_config = ConfigDict(populate_by_name=True)

    data_collection: str = Field(alias="data-collection")
    filter: str


class SnapshotRequest(BaseModel):
    """Which tables to copy again."""

    model_config = ConfigDict(populate_by_name=True)

    id: str | None = Field(None, max_length=ID_CHARACTERS_MAX)
    tables: list[str] = Field(
        alias="data-collections", description="Whole names, or regular expressions for whole names.", max_length=5000
    )
    type: str | None = Field(None, description="`incremental`, the default, or `blocking`.", max_length=50)
    conditions: list[Condition] | None = Field(None, alias="additional-conditions")
    surrogate_key: str | None = Field(None, alias="surrogate-key")


class TablesRequest(BaseModel):
    """Which tables are meant; all of them by default."""

    model_config = ConfigDict(populate_by_name=True)

    tables: list[str] = Field([], alias="data-collections", max_length=5000)


class NotificationInfo(BaseModel):
    """A step in the life of a copy."""

    step: CopyStep
    time: datetime
    signal: str | None
    table: str | None
    rows: int
    chunks: int
    text: str | None


class SnapshotsInfo(BaseModel):
    """All copies: those under way, those that were asked for, and what is paused."""

    copying: list[str] = Field(description="Tables that are being copied or wait for it.")
    paused: list[str] = Field(description="Tables whose copy is paused; `*` for all.")
    progress: list[CopyProgress]
    asked: list[SignalInfo]
    notifications: list[NotificationInfo] = Field(description="The last hundred.")


@router.get("/connectors/{name}/signals")
def list_signals(supervisor: GetSupervisor, name: Name) -> list[SignalInfo]:
    """Every signal that is kept, oldest first, and what became of it."""
    home = supervisor.lake_home(name)
    return [] if home.source() is None else [_info(each) for each in lake_signals(home)]


@router.post("/connectors/{name}/signals", status_code=202)
def send_signal(supervisor: GetSupervisor, name: Name, request: SignalRequest) -> SignalInfo:
    """Ask something of a connector: of its run, or of the next. Durable when this answers."""
    return _send(supervisor, name, request.type, request.data, request.id)


@router.get("/connectors/{name}/signals/{id:path}")
def get_signal(
    supervisor: GetSupervisor, name: Name, id: Annotated[str, Path(description="The signal's id.")]
) -> SignalInfo:
    """What became of one signal."""
    return _find(supervisor.lake(name), id)


@router.get("/connectors/{name}/snapshots")
def list_snapshots(parts: GetParts, name: Name) -> SnapshotsInfo:
    """Copies that are under way, and how far they are."""
    home = parts.supervisor.lake_home(name)
    if home.source() is None:
        return SnapshotsInfo(copying=[], paused=[], progress=[], asked=[], notifications=[])
    records = {table: record for table, record in sorted(home.tables.load().items()) if record.state in COPYING}
    copying = [str(table) for table in records]
    told = {each.table: each for each in parts.board.of(name).copying}
    progress = [CopyProgress.of(each) for each in {**stored_progress(home, records), **told}.values()]
    return SnapshotsInfo(
        copying=copying,
        paused=sorted(home.signals.snapshots.load().paused),
        progress=progress,
        asked=[_info(each) for each in lake_signals(home) if each.signal.type == EXECUTE],
        notifications=[_notification(each) for each in home.signals.notifications.all()[-100:]],
    )


@router.post("/connectors/{name}/snapshots", status_code=202)
def start_snapshot(supervisor: GetSupervisor, name: Name, request: SnapshotRequest) -> SignalInfo:
    """Copy tables again beside the stream."""
    data = request.model_dump(by_alias=True, exclude_none=True, exclude={"id"})
    return _send(supervisor, name, EXECUTE, data, request.id)


@router.post("/connectors/{name}/snapshots/pause", status_code=202)
def pause_snapshots(supervisor: GetSupervisor, name: Name, request: TablesRequest | None = None) -> SignalInfo:
    """Read nothing more of these tables for now; they still follow the stream."""
    return _send(supervisor, name, "pause-snapshot", _tables(request))


@router.post("/connectors/{name}/snapshots/resume", status_code=202)
def resume_snapshots(supervisor: GetSupervisor, name: Name, request: TablesRequest | None = None) -> SignalInfo:
    """Continue copies that were paused."""
    return _send(supervisor, name, "resume-snapshot", _tables(request))


@router.post("/connectors/{name}/snapshots/stop", status_code=202)
def stop_snapshots(supervisor: GetSupervisor, name: Name, request: TablesRequest | None = None) -> SignalInfo:
    """Give up copies that are under way."""
    return _send(supervisor, name, "stop-snapshot", _tables(request))


def _tables(request: TablesRequest | None) -> dict[str, Any]:
    return {"data-collections": request.tables} if request and request.tables else {}


def _send(
    supervisor: Supervisor, name: str, type: str, data: dict[str, Any] | None, id: str | None = None
) -> SignalInfo:
    home = supervisor.lake(name)
    sent = signal(home.lake, type, data, id)
    return _find(home, sent)


def _find(home: LakeHome, id: str) -> SignalInfo:
    for record in lake_signals(home):
        if record.signal.id == id:
            return _info(record)
    raise NotFoundError(f"there is no signal {id[:100]}", "the last thousand that have ended are kept")


def _info(record: SignalRecord) -> SignalInfo:
    return SignalInfo(
        id=record.signal.id,
        type=record.signal.type,
        data=record.signal.data[:DATA_CHARACTERS_MAX],
        channel=record.channel,
        state=record.state,
        result=record.result,
        received=moment(record.received_us),
        updated=moment(record.updated_us),
    )


def _notification(each: Notification) -> NotificationInfo:
    return NotificationInfo(
        step=each.step,
        time=moment(each.time_us),
        signal=each.signal,
        table=each.table,
        rows=each.rows,
        chunks=each.chunks,
        text=each.text,
    )
