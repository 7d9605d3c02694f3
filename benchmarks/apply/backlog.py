"""A backlog from the log to published tables, next to Debezium; the same states and a thousand more, next to MERGE."""

from __future__ import annotations

import shutil
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from benchmarks.aims import Aim
from benchmarks.apply.scale import Scale
from benchmarks.debezium import DebeziumSlot
from benchmarks.figures import PeakMemory, console, processor_seconds, seconds, show
from benchmarks.lakes import Publisher, SteppedLake
from benchmarks.orders import Orders
from benchmarks.plots import bars
from demo.embedded import EmbeddedPostgres
from pyspark.sql import SparkSession

from tailrace.changes.logged_table import touched_shape
from tailrace.changes.tail import TAIL_BYTES_MAX, read_tail
from tailrace.engine.spark.session import session
from tailrace.lake.formats import format_named
from tailrace.model.change import DELETED, STATE_METADATA
from tailrace.model.table import TableId
from tailrace.source.postgres.source import PostgresSource

DEBEZIUM_RATIO = 4.0
MERGE_RATIO = 15.0
TABLE = TableId("public", "orders")


@dataclass
class Times:
    """Seconds of each round, the cold one first."""

    capture: list[float] = field(default_factory=list)
    debezium: list[float] = field(default_factory=list)
    published: list[float] = field(default_factory=list)
    merged: list[float] = field(default_factory=list)
    small_published: list[float] = field(default_factory=list)
    small_merged: list[float] = field(default_factory=list)
    memory: str = ""
    """The most that publishing the last backlog took."""


@dataclass(frozen=True)
class _Field:
    """Where the contestants meet."""

    orders: Orders
    lake: SteppedLake
    slot: DebeziumSlot
    spark: SparkSession
    rival: Path
    """A copy of the lake table that Spark merges into."""


def measure(server: EmbeddedPostgres, folder: Path, scale: Scale) -> list[Aim]:
    dsn = server.create_database("backlog")
    orders = Orders(dsn, TABLE.name, scale.rows).load()
    spark = session(format_named("delta"), folder / "spark.log", brief=False)
    lake = SteppedLake(dsn, folder / "lake", spark)
    copied = lake.copy()
    console.print(f"{scale.rows:,} rows copied in {seconds(copied)}")
    contest = _Field(orders, lake, DebeziumSlot(dsn, TABLE.name).make(), spark, folder / "rival")
    times = Times()
    with lake.publisher() as publisher:
        for _ in range(1 + scale.rounds):
            _round(contest, publisher, scale, times)
        _merge_all(contest, publisher, scale, times)
        _merge_small(contest, publisher, scale, times)
    spark.stop()
    _show(times, scale)
    return _aims(times)


def _round(contest: _Field, publisher: Publisher, scale: Scale, times: Times) -> None:
    contest.orders.change(scale.warm_up)
    captured = contest.lake.fill_log()
    publisher.publish()
    contest.orders.change(scale.changes)
    captured = contest.lake.fill_log()
    drained = contest.slot.drain(scale.warm_up + scale.changes, scale.changes)
    with PeakMemory() as memory:
        used = processor_seconds()
        published = publisher.publish()
        used = processor_seconds() - used
    times.memory = str(memory)
    times.capture.append(captured)
    times.debezium.append(drained.seconds)
    times.published.append(published)
    theirs = f"{seconds(drained.seconds)}, {seconds(drained.processor_seconds)} of the processor"
    console.print(
        f"{scale.changes:,} changes: into the log {seconds(captured)}; from the log published {seconds(published)},"
        f" {seconds(used)} of the processor; Debezium {theirs}, {drained.peak_mb:,.0f} MB"
    )


def _merge_all(contest: _Field, publisher: Publisher, scale: Scale, times: Times) -> None:
    """The states of one more backlog, merged by Spark: a plain figure, no aim."""
    console.print("MERGE of the states of two backlogs, then of small batches")
    for _ in range(2):
        _copy_table(contest)
        contest.orders.change(scale.changes)
        contest.lake.fill_log()
        times.merged.append(_merge(contest, publisher))
        publisher.publish()


def _merge_small(contest: _Field, publisher: Publisher, scale: Scale, times: Times) -> None:
    _copy_table(contest)
    for number in range(2 + scale.batches):
        contest.orders.change(scale.batch)
        contest.lake.fill_log()
        merged = _merge(contest, publisher)
        published = publisher.publish()
        if number >= 2:
            times.small_merged.append(merged)
            times.small_published.append(published)
    _require_same(contest)


def _copy_table(contest: _Field) -> None:
    shutil.rmtree(contest.rival, ignore_errors=True)
    shutil.copytree(contest.lake.home.place_of(TABLE).address, contest.rival)
    # Delta remembers what it knew of a table in this place.
    contest.spark.catalog.clearCache()
    jvm: Any = contest.spark._jvm
    place = jvm.org.apache.hadoop.fs.Path(str(contest.rival))
    jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(contest.spark._jsparkSession, place)


def _merge(contest: _Field, publisher: Publisher) -> float:
    """What is not published yet, compacted, and merged by Spark; only the merge counts."""
    between = publisher.seq, publisher.reader.refresh().seq
    decode, relation = PostgresSource.decode, publisher.relation(TABLE)
    shape = touched_shape(publisher.reader, TABLE, between, decode, relation)
    assert shape is not None
    tail = read_tail(publisher.reader, shape, between, (), TAIL_BYTES_MAX)
    assert tail is not None
    columns = [name for name in tail.states.column_names if name not in STATE_METADATA]
    path = contest.rival.with_name("states.parquet")
    pq.write_table(tail.states.select([*columns, DELETED]).rename_columns([*columns, "is_gone"]), path)
    contest.spark.read.parquet(str(path)).createOrReplaceTempView("states")
    begun = time.perf_counter()
    contest.spark.sql(
        f"""
        merge into delta.`{contest.rival}` t using states s on t.id = s.id
        when matched and s.is_gone then delete
        when matched then update set {", ".join(f"t.{name} = s.{name}" for name in columns)}
        when not matched and not s.is_gone
            then insert ({", ".join(columns)}) values ({", ".join(f"s.{name}" for name in columns)})
        """
    )
    return time.perf_counter() - begun


def _require_same(contest: _Field) -> None:
    """Both did the same work."""
    ours, theirs = (
        contest.spark.read.format("delta").load(str(path)).selectExpr("count(*)", "sum(id)", "sum(total)").collect()
        for path in (Path(contest.lake.home.place_of(TABLE).address), contest.rival)
    )
    if ours != theirs:
        raise RuntimeError(f"MERGE and Tailrace disagree: {theirs} and {ours}")


def _show(times: Times, scale: Scale) -> None:
    name = f"{scale.changes:,} changes"
    show(
        f"{name} on {scale.rows:,} rows, medians of {scale.rounds}",
        ["", "warm", "cold", "changes/s"],
        [
            [label, seconds(_warm(found)), seconds(found[0]), f"{scale.changes / _warm(found):,.0f}"]
            for label, found in {
                "into the log": times.capture,
                "from the log, published": times.published,
                "Debezium to nothing": times.debezium,
                "Spark's MERGE of the states": times.merged,
            }.items()
        ],
    )
    ours, theirs = statistics.median(times.small_published), statistics.median(times.small_merged)
    show(
        f"{scale.batch:,} changes to any rows, medians of {scale.batches}",
        ["", "seconds"],
        [["from the log, published", seconds(ours)], ["Spark's MERGE of the states", seconds(theirs)]],
    )
    console.print(f"peak memory while the backlog was published: {times.memory}")
    values = {
        "published": _warm(times.published),
        "Debezium to nothing": _warm(times.debezium),
        "Spark's MERGE": _warm(times.merged),
        f"{scale.batch:,}: published": ours,
        f"{scale.batch:,}: MERGE": theirs,
    }
    console.print(f"plot: {bars('bench-apply', f'{name}, from the log to the lake', 's', values)}")


def _warm(found: list[float]) -> float:
    return statistics.median(found[1:])


def _aims(times: Times) -> list[Aim]:
    small = statistics.median(times.small_merged) / statistics.median(times.small_published)
    return [
        Aim("backlog-debezium-to-ours", _warm(times.debezium) / _warm(times.published), DEBEZIUM_RATIO),
        Aim("small-batch-merge-to-ours", small, MERGE_RATIO),
    ]
