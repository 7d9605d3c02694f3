"""What the process's Spark does, for people. Looking never starts one, and never waits for a job.

Spark itself remembers its jobs, whether or not it shows its own page: the last hundred.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tailrace.engine.spark.cluster import has_context
from tailrace.engine.spark.session import LazySession, is_alive


@dataclass(frozen=True)
class SparkJobSeen:
    """One job."""

    number: int
    description: str
    group: str | None
    state: str
    """`running`, `succeeded`, `failed` or `unknown`."""
    begun: datetime | None
    ended: datetime | None
    tasks: int
    tasks_done: int
    tasks_failed: int


@dataclass(frozen=True)
class SparkStageSeen:
    """A stage that runs now."""

    number: int
    name: str
    tasks: int
    tasks_active: int
    tasks_done: int
    tasks_failed: int


@dataclass(frozen=True)
class SparkSeen:
    """A session at one moment."""

    master: str
    is_up: bool = False
    application: str | None = None
    ui: str | None = None
    """Where Spark shows its own page; None where it does not."""
    jobs: Sequence[SparkJobSeen] = ()
    """The newest first."""
    stages: Sequence[SparkStageSeen] = ()
    problem: str | None = None
    """Why nothing is known of its jobs."""


def look(session: LazySession, jobs_max: int) -> SparkSeen:
    """What a session does, if it has been started."""
    spark = session.started
    if spark is None or not is_alive(spark):
        return SparkSeen(session.master)
    if not has_context(spark):
        return SparkSeen(session.master, is_up=True, problem="Spark Connect tells nothing of its jobs")
    try:
        return _seen(session.master, spark, jobs_max)
    except (Py4JError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # It may have ended at this moment; and another version may tell of its jobs in another way.
        return SparkSeen(session.master, is_alive(spark), problem=f"Spark cannot be asked: {type(error).__name__}")


def _seen(master: str, spark: SparkSession, jobs_max: int) -> SparkSeen:
    context = spark.sparkContext
    gateway: Any = context._jvm
    # All in one call: each that crosses into the JVM costs.
    jobs = context._jsc.sc().statusStore().jobsList(None).take(jobs_max)
    written = gateway.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper().writeValueAsString(jobs)
    tracker = context.statusTracker()
    found = [(number, tracker.getStageInfo(number)) for number in tracker.getActiveStageIds()]
    stages = [
        SparkStageSeen(
            number, each.name, each.numTasks, each.numActiveTasks, each.numCompletedTasks, each.numFailedTasks
        )
        for number, each in found
        if each is not None
    ]
    told = [_job(each) for each in json.loads(written)]
    return SparkSeen(master, True, context.applicationId, context.uiWebUrl, told, stages)


def _job(fields: dict[str, Any]) -> SparkJobSeen:
    return SparkJobSeen(
        number=fields["jobId"],
        description=fields.get("description") or fields["name"],
        group=fields.get("jobGroup"),
        state=str(fields["status"]).lower(),
        begun=_time(fields.get("submissionTime")),
        ended=_time(fields.get("completionTime")),
        tasks=fields["numTasks"],
        tasks_done=fields["numCompletedTasks"],
        tasks_failed=fields["numFailedTasks"],
    )


def _time(text: str | None) -> datetime | None:
    """As Spark writes it: `2026-11-19T23:04:51.123GMT`."""
    return None if text is None else datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC)
