"""What can be asked of a connector while it runs: signals, and what became of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from tailrace.connector.signals.runs import EXECUTE
from tailrace.connector.signals.sender import lake_signals, signal
from tailrace.lake.home import LakeHome
from tailrace.model.signal import DATA_CHARACTERS_MAX, ID_CHARACTERS_MAX, SignalRecord, SignalState
from tailrace.server.api.parts import GetSupervisor, Name
from tailrace.server.errors import NotFoundError, RequestConflictError
from tailrace.server.moments import moment
from tailrace.server.supervisor.door import ConnectorHost

router = APIRouter(tags=["signals"])


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

    @classmethod
    def of(cls, record: SignalRecord) -> SignalInfo:
        return cls(
            id=record.signal.id,
            type=record.signal.type,
            data=record.signal.data[:DATA_CHARACTERS_MAX],
            channel=record.channel,
            state=record.state,
            result=record.result,
            received=moment(record.received_us),
            updated=moment(record.updated_us),
        )


@router.get("/connectors/{name}/signals")
def list_signals(supervisor: GetSupervisor, name: Name) -> list[SignalInfo]:
    """Every signal that is kept, oldest first, and what became of it."""
    home = supervisor.lake_home(name)
    return [] if home.source() is None else [SignalInfo.of(each) for each in lake_signals(home)]


@router.post("/connectors/{name}/signals", status_code=202)
def send_signal(supervisor: GetSupervisor, name: Name, request: SignalRequest) -> SignalInfo:
    """Ask something of a connector: of its run, or of the next. Durable when this answers."""
    return send(supervisor, name, request.type, request.data, request.id)


@router.get("/connectors/{name}/signals/{id:path}")
def get_signal(
    supervisor: GetSupervisor, name: Name, id: Annotated[str, Path(description="The signal's id.")]
) -> SignalInfo:
    """What became of one signal."""
    return _find(supervisor.lake(name), id)


def send(
    supervisor: ConnectorHost, name: str, type: str, data: dict[str, Any] | None, id: str | None = None
) -> SignalInfo:
    """The signal, durable, as it waits or is already taken up."""
    home = supervisor.lake(name)
    if not home.folder.is_dir():
        raise RequestConflictError(f"the home of {home.lake} is not on this machine", "ask where its connector runs")
    return _find(home, signal(home.lake, type, data, id))


def _find(home: LakeHome, id: str) -> SignalInfo:
    for record in lake_signals(home):
        if record.signal.id == id:
            return SignalInfo.of(record)
    raise NotFoundError(f"there is no signal {id[:100]}", "the last thousand that have ended are kept")
