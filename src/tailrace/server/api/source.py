"""What a connector's source keeps for it, asked at this moment."""

from __future__ import annotations

import time
from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.server.api.parts import GetSupervisor, Name, required_source
from tailrace.server.hints import in_properties
from tailrace.server.moments import moment
from tailrace.source.kinds import codec_of

router = APIRouter(tags=["source"])


class SourceBytes(BaseModel):
    """How far apart positions are; None where the source does not count in bytes."""

    log_to_end: int | None = Field(description="What the source has written and the log does not have.")
    kept_to_end: int | None = Field(description="What the source keeps of its own log for the lake.")


class SourceInfo(BaseModel):
    """One source, in its own words."""

    kind: str
    asked: datetime
    end: str = Field(description="Where the source's own log ends.")
    log: str | None = Field(description="How far our log has it.")
    cut: str | None = Field(description="The newest cut's commit.")
    kept_from: str | None = Field(description="From here on it keeps its own log for the lake; None where nothing is.")
    bytes: SourceBytes
    problem: str | None = Field(description="Why no one else could read from it now, such as that we do.")
    risk: str | None = Field(description="Why it may soon be unable to send what the lake lacks, or is so already.")
    hint: str | None = Field(description="What helps against the risk.")
    facts: dict[str, str] = Field(
        description="What else it says, each kind of source in its own words.",
        examples=[{"wal_status": "reserved", "server": "Postgres 18.1"}],
    )


@router.get("/connectors/{name}/source")
def get_source(supervisor: GetSupervisor, name: Name) -> SourceInfo:
    """Ask the source what it keeps for this connector, and how far it is itself. Changes nothing there."""
    home = supervisor.lake(name)
    source, record = required_source(supervisor, name), home.source()
    assert record is not None
    with supervisor.asking_source():
        served = source.offsets().served(record.claim)
    log = LogReader(home.log).head.ordinal if home.has_log else None
    cut = home.cuts.newest()
    written = codec_of(record.kind).format
    counts, kept = served.kept_bytes is not None, served.kept or served.oldest
    return SourceInfo(
        kind=record.kind,
        asked=moment(time.time_ns() // 1000),
        end=written(served.newest),
        log=None if log is None else written(SourcePosition(log)),
        cut=None if cut is None else written(cut.position),
        kept_from=None if kept is None else written(kept),
        bytes=SourceBytes(
            log_to_end=max(0, served.newest.ordinal - log) if counts and log is not None else None,
            kept_to_end=served.kept_bytes,
        ),
        problem=served.problem,
        risk=served.risk,
        hint=None if served.remedy is None else in_properties(served.remedy),
        facts=dict(served.facts),
    )
