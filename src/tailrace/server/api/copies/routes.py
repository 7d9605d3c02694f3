"""Copies of tables beside the stream: those under way, those there were, and starting, pausing, resuming, stopping."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from tailrace.connector.signals.orders import ExecuteSnapshot, Rejection, order_of
from tailrace.connector.signals.plan import SourceView, ask_source, plan_of
from tailrace.connector.signals.runs import EXECUTE, runs_of
from tailrace.connector.signals.sender import lake_signals
from tailrace.connector.status import stored_progress
from tailrace.model.signal import Signal
from tailrace.model.table_state import COPYING
from tailrace.server.api.copies.models import (
    NotificationInfo,
    PlanInfo,
    RunInfo,
    SnapshotRequest,
    SnapshotsInfo,
    TablesRequest,
)
from tailrace.server.api.parts import GetParts, GetSupervisor, Name, known_source
from tailrace.server.api.progress.models import CopyProgress
from tailrace.server.api.signals import SignalInfo, send
from tailrace.server.errors import RequestConflictError, RequestError
from tailrace.server.supervisor.door import ConnectorHost
from tailrace.source.kinds import codec_of

router = APIRouter(prefix="/connectors/{name}/snapshots", tags=["snapshots"])
DryRun = Annotated[bool, Query(description="Send nothing; say what would be copied.")]
STEPS_MAX = 100


@router.get("")
def list_snapshots(parts: GetParts, name: Name) -> SnapshotsInfo:
    """Copies that are under way, and how far they are."""
    home = parts.supervisor.lake_home(name)
    if home.source() is None:
        return SnapshotsInfo(copying=[], paused=[], partial=[], progress=[], asked=[], notifications=[])
    records = {table: record for table, record in sorted(home.tables.load().items()) if record.state in COPYING}
    copying, snapshots = [str(table) for table in records], home.signals.snapshots.load()
    told = {each.table: each for each in parts.board.of(name).copying}
    progress = [CopyProgress.of(each) for each in {**stored_progress(home, records), **told}.values()]
    return SnapshotsInfo(
        copying=copying,
        paused=sorted(snapshots.paused),
        partial=sorted({table for order in snapshots.orders.values() for table in order.parts} & set(copying)),
        progress=progress,
        asked=[SignalInfo.of(each) for each in lake_signals(home) if each.signal.type == EXECUTE],
        notifications=[NotificationInfo.of(each) for each in home.signals.notifications.all()[-STEPS_MAX:]],
    )


@router.get("/runs")
def list_snapshot_runs(
    supervisor: GetSupervisor, name: Name, limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> list[RunInfo]:
    """Every copy so far, newest first, as far back as the journal of the lake goes."""
    home = supervisor.lake_home(name)
    if home.source() is None:
        return []
    unasked = bool(home.signals.snapshots.load().unasked)
    runs = runs_of(home.signals.notifications.all(), lake_signals(home), are_unasked_open=unasked)
    return [RunInfo.of(each) for each in runs[-limit:][::-1]]


@router.post("", status_code=202, responses={200: {"model": PlanInfo, "description": "Of a dry run."}})
def start_snapshot(
    supervisor: GetSupervisor, name: Name, request: SnapshotRequest, response: Response, dry_run: DryRun = False
) -> SignalInfo | PlanInfo:
    """Copy tables again beside the stream."""
    data = request.model_dump(by_alias=True, exclude_none=True, exclude={"id"})
    if not dry_run:
        return send(supervisor, name, EXECUTE, data, request.id)
    response.status_code = 200
    return _plan(supervisor, name, Signal(request.id or "plan", EXECUTE, json.dumps(data)))


@router.post("/pause", status_code=202)
def pause_snapshots(supervisor: GetSupervisor, name: Name, request: TablesRequest | None = None) -> SignalInfo:
    """Read nothing more of these tables for now; they still follow the stream."""
    return send(supervisor, name, "pause-snapshot", _data(request))


@router.post("/resume", status_code=202)
def resume_snapshots(supervisor: GetSupervisor, name: Name, request: TablesRequest | None = None) -> SignalInfo:
    """Continue copies that were paused."""
    return send(supervisor, name, "resume-snapshot", _data(request))


@router.post("/stop", status_code=202)
def stop_snapshots(supervisor: GetSupervisor, name: Name, request: TablesRequest | None = None) -> SignalInfo:
    """Give up copies that are under way."""
    return send(supervisor, name, "stop-snapshot", _data(request))


def _data(request: TablesRequest | None) -> dict[str, Any]:
    found = request.model_dump(by_alias=True, exclude_none=True) if request is not None else {}
    return {key: value for key, value in found.items() if value != []}


def _plan(supervisor: ConnectorHost, name: str, signal: Signal) -> PlanInfo:
    home = supervisor.lake(name)
    record, order = home.source(), order_of(signal)
    if isinstance(order, Rejection):
        raise RequestError(f"invalid signal: {order.reason}")
    assert isinstance(order, ExecuteSnapshot)
    if record is None:
        raise RequestConflictError(f"connector {name} has no lake yet", "start it")
    records = home.tables.load()
    plan, source = plan_of(order, records, home.signals.snapshots.load()), known_source(supervisor, name)
    if source is None:
        view = SourceView({}, {}, "the address of the source is not known here")
    else:
        with supervisor.asking_source():
            view = ask_source(source.claimed(record.claim), plan, records)
    return PlanInfo.of(plan, view, codec_of(record.kind))
