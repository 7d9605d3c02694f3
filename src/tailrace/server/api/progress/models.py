"""How far connectors are, as the API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from tailrace.model.copy_progress import TableProgress
from tailrace.server.figures import FIGURES


class CopyProgress(BaseModel):
    """How far the copy of a table is."""

    table: str
    rows: int
    rows_estimated: int
    chunks: int
    percent: float
    rows_per_second: float
    seconds_left: float | None = Field(description="None where that cannot be told yet.")
    is_estimated: bool = Field(
        description="Whether `rows_estimated` says how far it is: not if the source had no estimate, or too low a one."
    )
    held_seconds_max: float = Field(description="The longest that a window has held a state of the source.")

    @classmethod
    def of(cls, each: TableProgress) -> CopyProgress:
        return cls(
            table=str(each.table),
            rows=each.rows_done,
            rows_estimated=each.rows_estimated,
            chunks=each.chunks_done,
            percent=round(each.percent, 1),
            rows_per_second=round(each.rows_per_second, 1),
            seconds_left=None if each.seconds_left is None else round(each.seconds_left, 1),
            is_estimated=each.rows_done < each.rows_estimated,
            held_seconds_max=round(each.held_seconds_max, 3),
        )


class LifeInfo(BaseModel):
    """What is wanted of a connector, and what there is of it."""

    state: str = Field(description="Kafka Connect's word: RUNNING, PAUSED, STOPPED, FAILED, RESTARTING, UNASSIGNED.")
    target: str = Field(description="What a person wants: RUNNING, PAUSED or STOPPED.")
    phase: str = Field(description="idle, up, held, ending, waiting or failed.")
    since: datetime | None = Field(description="When the phase began; null where the server did not see that.")
    run_state: str | None = Field(
        description="Of its run: starting, snapshotting, running and so on; null without one."
    )
    trace: str | None = Field(description="What the last run ended with, and a hint on its last line.")
    failures: int = Field(description="Runs that failed one after another and were tried again.")
    retry_due: datetime | None = Field(description="When the next run begins by itself.")


class TroubleInfo(BaseModel):
    """What a connector waits for, or tries again."""

    message: str
    hint: str | None
    since: datetime


class SourceAddress(BaseModel):
    """Which database it copies."""

    kind: str | None = Field(description="Null until it has a lake.")
    host: str | None
    port: str | None
    database: str | None


class LogProgress(BaseModel):
    """Where the log is."""

    seq: int = Field(description="Its newest transaction.")
    changes_per_second: float


class CutProgress(BaseModel):
    """The newest published cut."""

    seq: int
    position: str
    committed: datetime
    published: datetime
    seconds: float | None = Field(description="What it took to publish; null where another run did.")
    tables: int


class Lag(BaseModel):
    """How far the lake is behind."""

    seconds: float = Field(description="Age of the oldest commit that is logged and not published; 0 when all are.")
    bytes: int | None = Field(description="What the source has written and the log does not have yet.")
    transactions: int = Field(description="In the log and not published.")


class SparkWork(BaseModel):
    """What Spark has done in this run."""

    spark_jobs: int
    spark_tasks: int


class DiskInfo(BaseModel):
    """The disk that the lake is on."""

    free_bytes: int
    log_bytes: int


class ConnectorProgress(BaseModel):
    """How far a connector is, and what keeps it from getting further."""

    name: str
    at: datetime
    life: LifeInfo
    why_not: str | None = Field(description="Why it should get further and does not; null where it progresses.")
    trouble: TroubleInfo | None
    source: SourceAddress
    log: LogProgress | None = Field(description="Null without a run that has begun to follow its log.")
    cut: CutProgress | None
    lag: Lag | None
    lake: LakeProgress | None = Field(description="Null until it has a lake.")
    work: SparkWork | None


class LakeProgress(BaseModel):
    """What the lake's files say."""

    tables: dict[str, int] = Field(description="How many tables are in each state.")
    copying: list[CopyProgress]
    disk: DiskInfo


class FiguresInfo(BaseModel):
    """Figures over time, all on one time axis. A time that was not sampled is left out, a figure that was not known
    then is null."""

    step_seconds: int
    began: datetime = Field(description="Nothing is known from before.")
    times: list[int] = Field(description="Seconds since 1970, oldest first.")
    connectors: dict[str, dict[str, list[float | None]]] = Field(
        description=f"By connector, the figures {', '.join(FIGURES)}, a value for each time."
    )


ConnectorProgress.model_rebuild()
