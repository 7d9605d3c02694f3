"""What the server's Spark does: one for all connectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tailrace.engine.spark.watching import SparkJobSeen, SparkStageSeen, look
from tailrace.errors import TailraceError
from tailrace.server.api.parts import GetSupervisor
from tailrace.server.supervisor.door import ConnectorHost

JOBS_MAX = 50

router = APIRouter(tags=["server"])


class SparkJobInfo(BaseModel):
    """One job: a batch that is published, rows that are copied or files that are written again."""

    number: int
    description: str
    connector: str | None = Field(description="Whose it is; None where that connector is gone.")
    state: str = Field(description="`running`, `succeeded`, `failed` or `unknown`.")
    begun: datetime | None
    ended: datetime | None
    tasks: int
    tasks_done: int
    tasks_failed: int

    @classmethod
    def of(cls, job: SparkJobSeen, connector: str | None) -> SparkJobInfo:
        fields = {name: value for name, value in vars(job).items() if name != "group"}
        return cls(connector=connector, **fields)


class SparkStageInfo(BaseModel):
    """A stage that runs now."""

    number: int
    name: str
    tasks: int
    tasks_active: int
    tasks_done: int
    tasks_failed: int

    @classmethod
    def of(cls, stage: SparkStageSeen) -> SparkStageInfo:
        return cls(**vars(stage))


class SparkInfo(BaseModel):
    """The Spark that all connectors share."""

    is_up: bool = Field(description="It starts when the first connector needs it.")
    master: str | None = Field(description="Where it works, or will; None where this process has none.")
    application: str | None
    ui: str | None = Field(description="Where Spark shows its own page; None where it does not.")
    stages: list[SparkStageInfo] = Field(description="Those that run now.")
    jobs: list[SparkJobInfo] = Field(description=f"The last {JOBS_MAX}, the newest first.")
    problem: str | None = Field(description="Why nothing is known of its jobs.")


@router.get("/spark")
def get_spark(supervisor: GetSupervisor) -> SparkInfo:
    """Whether Spark is up, what it does now, and its last jobs with their connectors. Never starts one."""
    session = supervisor.own.session
    if session is None:
        problem = "this process has no Spark of its own to look at"
        return SparkInfo(is_up=False, master=None, application=None, ui=None, stages=[], jobs=[], problem=problem)
    seen = look(session, JOBS_MAX)
    places = list(_places(supervisor)) if seen.jobs else []
    return SparkInfo(
        is_up=seen.is_up,
        master=seen.master,
        application=seen.application,
        ui=seen.ui,
        stages=[SparkStageInfo.of(each) for each in seen.stages],
        jobs=[SparkJobInfo.of(each, owner_of(each.group, places)) for each in seen.jobs],
        problem=seen.problem,
    )


def _places(host: ConnectorHost) -> Iterator[tuple[str, str]]:
    """Where each connector's lake and its home are, by which its jobs are named."""
    for name in host.names():
        # One that is removed at this moment, or cannot be read any more, has no jobs that matter.
        with suppress(TailraceError):
            home = host.lake_home(name)
            yield str(home.lake), name
            yield str(home.folder), name


def owner_of(group: str | None, places: list[tuple[str, str]]) -> str | None:
    """The connector whose place a group of jobs names: the longest one, for a lake may lie inside another's folder."""
    named = f"{group or ''} "
    fitting = [(place, name) for place, name in places if f" {place} " in named or f" {place}/" in named]
    return max(fitting, key=lambda each: len(each[0]))[1] if fitting else None
