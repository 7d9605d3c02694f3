"""`format("tailrace")` against a real log: batch, stream, admission control, bad options."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.integration.postgres.capturing import Capture
from tests.postgres import wait_until
from tests.running import sync_once

import tailrace
from tailrace.log.consumers import Consumers
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogWriter
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of
from tailrace.source.postgres.source import PostgresSource

TRANSACTIONS = 30


@pytest.fixture
def log(database: str, tmp_path: Path) -> Path:
    """A log with TRANSACTIONS transactions over two tables, captured from a real server."""
    source = PostgresSource(database)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(
            "create table one (id int primary key, v text); create table two (id int primary key, n numeric(10,2));"
            'create table odd (id int primary key, "_Seq" int)'
        )
        claim = source.claim(None)
        source.prepare(claim, [TableId("public", name) for name in ("one", "two", "odd")], None)
        for number in range(TRANSACTIONS):
            with conn.transaction():
                conn.execute("insert into one values (%s, %s)", (number, f"value {number}"))
                if number % 3 == 0:
                    conn.execute("insert into two values (%s, %s)", (number, number / 4))
                if number == 5:
                    conn.execute("insert into odd values (1, 1)")
    with Capture(source, claim, tmp_path / "log") as capture:
        target = source.now().ordinal
        wait_until(lambda: capture.head.ordinal >= target, 20)
    return tmp_path / "log"


def test_a_batch_read_gives_typed_changes_of_the_asked_range(spark: SparkSession, log: Path) -> None:
    tailrace.register(spark)
    reader = spark.read.format("tailrace").option("table", "public.one")
    rows = reader.option("startSeq", 10).option("endSeq", 20).load(str(log)).orderBy("_seq").collect()
    assert [(row["_op"], row["_seq"], row["id"], row["v"]) for row in rows] == [
        ("c", seq, seq - 1, f"value {seq - 1}") for seq in range(11, 21)
    ]
    assert sorted({row["_ordinal"] for row in rows}) == [row["_ordinal"] for row in rows]
    assert PostgresSource.format(SourcePosition(rows[0]["_ordinal"])) != "0/0"


def test_a_table_with_a_column_called_like_one_of_the_formats_own_is_refused_by_name(
    spark: SparkSession, log: Path
) -> None:
    tailrace.register(spark)
    with pytest.raises(
        Exception, match=r"table public\.odd has a column _Seq, the name of a column that this format adds"
    ):
        spark.read.format("tailrace").option("table", "public.odd").load(str(log))


def test_without_a_table_there_is_one_row_a_transaction(spark: SparkSession, log: Path) -> None:
    tailrace.register(spark)
    rows = spark.read.format("tailrace").load(str(log)).orderBy("seq").collect()
    assert [row["seq"] for row in rows] == list(range(1, TRANSACTIONS + 1))
    assert rows[0]["tables"] == ["public.one", "public.two"]
    assert rows[1]["changes"] == 1


def test_a_stream_brings_every_change_once_in_batches_of_whole_transactions(
    spark: SparkSession, log: Path, tmp_path: Path
) -> None:
    tailrace.register(spark)
    stream = (
        spark.readStream.format("tailrace").option("table", "public.two").option("maxTransactionsPerTrigger", 7)
    ).load(str(log))
    query = (
        stream.writeStream.format("memory").queryName("two").option("checkpointLocation", str(tmp_path / "checkpoint"))
    ).start()
    try:
        wait_until(lambda: spark.table("two").count() == TRANSACTIONS / 3 or query.exception(), 120)
        query.processAllAvailable()
        rows = spark.sql("select id, n from two order by id").collect()
        batches = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    finally:
        query.stop()
    assert [(row["id"], float(row["n"])) for row in rows] == [(n, n / 4) for n in range(0, TRANSACTIONS, 3)]
    assert len(batches) >= 4, "seven transactions a batch make several batches"


def test_an_unknown_option_or_table_is_refused_by_name(spark: SparkSession, log: Path) -> None:
    tailrace.register(spark)
    with pytest.raises(Exception, match="unknown option 'tabel'"):
        spark.read.format("tailrace").option("tabel", "public.one").load(str(log))
    with pytest.raises(Exception, match=r"neither the log nor the lake has a table public\.three"):
        spark.read.format("tailrace").option("table", "public.three").load(str(log))


def test_a_stream_of_a_fresh_lake_is_empty_and_then_brings_what_comes(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """The log has seen no change of the table when the stream begins; columns come and go while it runs."""
    lake = tmp_path / "lake"
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(
            "create table one (id int primary key, a text, b numeric(10,2)); insert into one values (1, 'a', 1)"
        )
        sync_once(ConnectorSettings(lake, once=True), source_of(database), spark)
        tailrace.register(spark)
        stream = spark.readStream.format("tailrace").option("table", "public.one").load(str(lake))
        assert [name for name in stream.columns if not name.startswith("_")] == ["id", "a", "b"]
        query = stream.writeStream.format("memory").queryName("fresh").start()
        try:
            query.processAllAvailable()
            assert spark.table("fresh").count() == 0
            conn.execute("insert into one values (2, 'b', 2)")
            conn.execute("alter table one drop a; alter table one add c text; insert into one values (3, 3, 'c')")
            sync_once(ConnectorSettings(lake, once=True), source_of(database), spark)
            query.processAllAvailable()
            rows = spark.sql("select id, a, b, _op from fresh order by id").collect()
        finally:
            query.stop()
    found = [(row["id"], row["a"], float(row["b"]), row["_op"]) for row in rows]
    assert found == [
        (2, "b", 2.0, "c"),
        (3, None, 3.0, "c"),
    ]


@pytest.mark.parametrize("table", ["public.one", None])
def test_only_a_start_that_was_deleted_from_the_log_is_refused(
    spark: SparkSession, log: Path, table: str | None
) -> None:
    writer = LogWriter.open(log, LogReader(log).identity)
    writer.roll()
    Consumers(log).acknowledge("lake", TRANSACTIONS)
    assert writer.retain()
    writer.close()
    tailrace.register(spark)
    reader = spark.read.format("tailrace").options(**({"table": table} if table else {}))
    assert reader.load(str(log)).collect() == []
    with pytest.raises(Exception, match="no longer holds all of transaction 11 "):
        reader.option("startSeq", 10).load(str(log)).collect()
