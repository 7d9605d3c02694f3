"""How far a connector is: what its run told last, and what its lake's files say."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress

from tailrace.configuration.reading import redacted
from tailrace.errors import TailraceError
from tailrace.lake.home import LakeHome
from tailrace.model.cut import PublishedCut
from tailrace.server.api.parts import ServerParts
from tailrace.server.api.progress.models import (
    ConnectorProgress,
    CopyProgress,
    CutProgress,
    DiskInfo,
    Lag,
    LakeProgress,
    LifeInfo,
    LogProgress,
    SourceAddress,
    SparkWork,
    TroubleInfo,
)
from tailrace.server.health import why_not_progressing
from tailrace.server.hints import in_properties
from tailrace.server.lakes.numbers import LakeNumbers
from tailrace.server.moments import moment
from tailrace.server.supervisor.board import Notes
from tailrace.server.supervisor.lifecycle import Phase
from tailrace.server.supervisor.supervisor import ConnectorView
from tailrace.source.kinds import codec_of


def progress_of(parts: ServerParts, view: ConnectorView) -> ConnectorProgress:
    """Of one connector, now. What of its lake cannot be read is left out."""
    notes, home = parts.board.of(view.name), None
    with suppress(TailraceError, OSError):
        home = parts.supervisor.lake_home(view.name)
    kind, lake, cut = None, None, None
    if home is not None:
        with suppress(TailraceError, OSError):
            source = home.source()
            kind = None if source is None else source.kind
            cut = None if kind is None else _cut(home, kind, notes)
            lake = None if kind is None else _lake(home, notes, parts.numbers)
    told = notes.progress
    return ConnectorProgress(
        name=view.name,
        at=moment(time.time_ns() // 1000),
        life=_life(view, notes),
        why_not=why_not_progressing(view, notes, parts.board.now()),
        trouble=_trouble(notes),
        source=_source(view, kind),
        log=None if told is None else LogProgress(seq=told.log_seq, changes_per_second=told.changes_per_second),
        cut=cut,
        lag=_lag(notes),
        lake=lake,
        work=None if told is None else SparkWork(spark_jobs=told.work.jobs, spark_tasks=told.work.tasks),
    )


def _life(view: ConnectorView, notes: Notes) -> LifeInfo:
    life, stage = view.life, notes.stage
    since_us = stage.since_us if stage is not None and stage.phase is life.phase else None
    is_waiting = life.phase is Phase.WAITING and since_us is not None
    return LifeInfo(
        state=view.state,
        target=life.target,
        phase=life.phase,
        since=None if since_us is None else moment(since_us),
        run_state=None if view.status is None else view.status.state,
        trace=view.trace,
        failures=life.failures,
        retry_due=moment(since_us + round(life.retry_seconds * 1e6)) if is_waiting and since_us is not None else None,
    )


def _trouble(notes: Notes) -> TroubleInfo | None:
    found = notes.trouble
    if found is None:
        return None
    hint = None if found.hint is None else in_properties(found.hint)
    return TroubleInfo(message=found.message, hint=hint, since=moment(found.since_us))


def _source(view: ConnectorView, kind: str | None) -> SourceAddress:
    """Without the user. A reference to a secret is shown as it was written."""
    shown = redacted(view.config)
    return SourceAddress(
        kind=kind,
        host=shown.get("database.hostname"),
        port=shown.get("database.port"),
        database=shown.get("database.dbname"),
    )


def _lag(notes: Notes) -> Lag | None:
    told = notes.progress
    if told is None:
        return None
    transactions = max(0, told.log_seq - told.cut.seq)
    return Lag(seconds=round(told.lag_seconds, 3), bytes=told.lag_bytes, transactions=transactions)


def _cut(home: LakeHome, kind: str, notes: Notes) -> CutProgress | None:
    """Of the run, or of the lake's journal where no run has told of one."""
    told = notes.progress.cut if notes.progress is not None else None
    newest: PublishedCut | None = notes.newest.cut if notes.newest is not None else None
    known = [each for each in (told, newest) if each is not None]
    cut = max(known, key=lambda each: each.seq) if known else home.cuts.newest()
    if cut is None:
        return None
    is_told = notes.newest is not None and notes.newest.cut.published_us == cut.published_us
    return CutProgress(
        seq=cut.seq,
        position=codec_of(kind).format(cut.position),
        committed=moment(cut.position.time_us),
        published=moment(cut.published_us),
        seconds=round(notes.newest.seconds, 3) if is_told and notes.newest is not None else None,
        tables=len(cut.tables),
    )


def _lake(home: LakeHome, notes: Notes, numbers: LakeNumbers) -> LakeProgress:
    return LakeProgress(
        tables={state.value: count for state, count in sorted(numbers.states(home).items())},
        copying=[CopyProgress.of(each) for each in notes.copying],
        disk=DiskInfo(free_bytes=shutil.disk_usage(home.folder).free, log_bytes=numbers.log_bytes(home)),
    )
