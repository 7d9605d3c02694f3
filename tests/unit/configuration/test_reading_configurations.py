"""What a configuration comes to: settings, a connection string, options of the source."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from tailrace.configuration.reading import Configuration, ConfigurationError, read
from tailrace.settings import Confirm, ConnectorSettings, SnapshotMode, SparkSettings, Watermarking

SERVER = {"database.hostname": "127.0.0.1", "database.user": "ann", "database.dbname": "shop"}
SHOP = {"name": "shop", "lake.path": "lake"} | SERVER

NOT_FOR_A_FILE = {
    "sizes",
    "retries",
    "is_guest",
    "once",
    "batch_bytes_max",
    "chunk_bytes_max",
    "tables_in_parallel",
    "look_at_tables_seconds",
}
"""`--once` is an option of the command; the others are our own business."""

MAPPED: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"lake.path": "/data/shop"}, {"lake": Path("/data/shop")}),
    ({"lake.format": "parquet"}, {"format": "parquet"}),
    ({"lake.publish.interval.ms": "250"}, {"publish_every_seconds": 0.25}),
    ({"lake.confirm": "lake"}, {"confirm": Confirm.LAKE}),
    ({"lake.retain": "30d"}, {"retain_seconds": 30 * 86400.0}),
    ({"lake.retain.all": "90s"}, {"retain_all_seconds": 90.0}),
    ({"log.keep": "12h"}, {"log_keep_seconds": 12 * 3600.0}),
    ({"log.quota": "20GB"}, {"log_quota_bytes": 20 << 30}),
    ({"log.segment": "1MB"}, {"log_segment_bytes_max": 1 << 20}),
    ({"log.compression": "ZSTD"}, {"log_compression": "zstd"}),
    ({"readers.max": "3"}, {"readers_max": 3}),
    ({"snapshot.max.threads": "4"}, {"readers_max": 4}),
    ({"snapshot.max.threads": "4", "readers.max": "4"}, {"readers_max": 4}),
    ({"incremental.snapshot.chunk.size": "1024"}, {"window_rows": 1024}),
    ({"incremental.snapshot.watermarking.strategy": "read_only"}, {}),
    (
        {"incremental.snapshot.watermarking.strategy": "INSERT_DELETE", "signal.data.collection": "a.b"},
        {"watermarking": Watermarking.INSERT_DELETE, "signal_table": "a.b"},
    ),
    (
        {"incremental.snapshot.watermarking.strategy": "insert_insert", "signal.data.collection": "a.b"}
        | {"read.only": "true"},
        {"signal_table": "a.b"},
    ),
    ({"incremental.snapshot.watermarking.strategy": "insert_insert", "read.only": "true"}, {}),
    ({"snapshot.mode": "initial_only"}, {"snapshot_mode": SnapshotMode.INITIAL_ONLY, "once": True}),
    ({"snapshot.mode": "no_data"}, {"snapshot_mode": SnapshotMode.NEVER}),
    ({"snapshot.mode": "never"}, {"snapshot_mode": SnapshotMode.NEVER}),
    ({"snapshot.mode": "incremental"}, {"snapshot_mode": SnapshotMode.INCREMENTAL}),
    ({"snapshot.mode": "WHEN_NEEDED"}, {"snapshot_mode": SnapshotMode.WHEN_NEEDED}),
    ({"signal.data.collection": "public.signals"}, {"signal_table": "public.signals"}),
    ({"signal.file": "/run/signals"}, {"signal_file": Path("/run/signals")}),
    (
        {"signal.data.collection": "a.b", "signal.file": "f", "signal.enabled.channels": "source,jmx"},
        {"signal_table": "a.b"},
    ),
    (
        {"signal.data.collection": "a.b", "signal.file": "f", "signal.enabled.channels": "file"},
        {"signal_file": Path("f")},
    ),
    (
        {"spark.master": "spark://host:7077", "spark.conf.spark.executor.memory": "2g"},
        {"spark": SparkSettings("spark://host:7077", (("spark.executor.memory", "2g"),))},
    ),
    ({"spark.ui": "true"}, {"spark": SparkSettings(ui=True)}),
    ({"table.include.list": "a.1,a.2"}, {"tables": ("a.1", "/a.1/", "a.2", "/a.2/")}),
    ({"table.exclude.list": "1.2", "schema.exclude.list": "3"}, {"exclude": ("/1.2/", "// in /3/")}),
    ({"schema.include.list": "1"}, {"tables": ("// in /1/",)}),
    ({"schema.include.list": "1", "table.include.list": r".*\.2"}, {"tables": (r"/.*\.2/ in /1/",)}),
]


@pytest.mark.parametrize(("properties", "expected"), MAPPED, ids=" ".join)
def test_a_property_sets_what_it_names_and_nothing_else(properties: dict[str, str], expected: dict[str, Any]) -> None:
    found = read(SHOP | properties).settings
    assert found == ConnectorSettings(**{"lake": Path("lake"), **expected})


def test_every_setting_has_a_property() -> None:
    set_by_some = {name for _, expected in MAPPED for name in expected}
    assert {each.name for each in fields(ConnectorSettings)} == set_by_some | NOT_FOR_A_FILE


def test_without_more_the_defaults_hold() -> None:
    configuration = read(SHOP)
    assert configuration.settings == ConnectorSettings(Path("lake"))
    assert configuration.source_options == {
        "slot": None,
        "publication": None,
        "append_only": [],
        "signal_table": None,
        "as_text": [],
        "generated": False,
        "stream": {"two_phase": False, "origin": "any", "failover": False},
    }
    assert (configuration.name, configuration.kind, configuration.server) == ("shop", "postgres", "shop")
    assert configuration.warnings == ()


def test_the_source_gets_its_options() -> None:
    named = {"slot.name": "s", "publication.name": "p", "signal.data.collection": "public.x", "topic.prefix": "t"}
    stream = {"stream.two.phase": "true", "stream.origin": "none", "slot.failover": "TRUE"}
    configuration = read(
        SHOP | named | stream | {"columns.as.text": "public.t.a, public.*.b", "columns.generated": "true"}
    )
    assert configuration.source_options == {
        "slot": "s",
        "publication": "p",
        "append_only": [],
        "signal_table": "public.x",
        "as_text": ["public.t.a", "public.*.b"],
        "generated": True,
        "stream": {"two_phase": True, "origin": "none", "failover": True},
    }
    assert configuration.server == "t"
    assert read(SHOP | {"append.only.tables": r"1\.2"}).source_options["append_only"] == [r"/1\.2/"]


def test_a_lake_that_is_not_named_is_the_connectors_folder(tmp_path: Path) -> None:
    assert read({"name": "shop"} | SERVER, tmp_path).settings.lake == tmp_path / "shop"
    assert read(SHOP, tmp_path).settings.lake == Path("lake")
    assert problems({"name": "shop"} | SERVER) == {"lake.path": ["missing: give the lake's folder"]}


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "../up", "a b", "-x", "Ä"])
def test_a_name_that_could_lead_out_of_the_folder_of_lakes_needs_a_path(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read({"name": name} | SERVER, tmp_path)
    assert list(caught.value.problems) == ["lake.path"]
    assert read(SHOP | {"name": name}, tmp_path).name == name


@pytest.mark.parametrize("given_class", ["tailrace.postgresql", "io.debezium.connector.postgresql.PostgresConnector"])
def test_both_names_of_the_connector_are_taken(given_class: str) -> None:
    assert read(SHOP | {"connector.class": given_class}).kind == "postgres"


def test_another_connector_is_refused_with_those_that_there_are() -> None:
    found = problems(SHOP | {"connector.class": "io.debezium.connector.mysql.MySqlConnector"})["connector.class"]
    assert "known are io.debezium.connector.postgresql.PostgresConnector, tailrace.postgresql" in found[0]


VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=12).filter(
    lambda text: "${" not in text and text.strip()
)


@given(VALUES, VALUES)
@example("it's", "a'b\\c d=e")
@example("::1", "postgresql://x:y@z/%41?")
@example("/var/run/postgresql", " blanks ")
def test_libpq_reads_every_value_as_it_was_given(host: str, password: str) -> None:
    properties = {"database.hostname": host, "database.password": password, "database.sslmode": "verify-full"}
    found = conninfo_to_dict(read(SHOP | properties).dsn)
    assert found == {
        "host": host.strip(),
        "password": password,
        "user": "ann",
        "dbname": "shop",
        "sslmode": "verify-full",
    }


def test_every_part_of_a_connection_gets_into_the_connection_string() -> None:
    names = ("sslcert", "sslkey", "sslpassword", "sslrootcert", "password")
    given_values = {f"database.{name}": f"the {name}" for name in names} | {"database.port": "5433"}
    found = conninfo_to_dict(read(SHOP | given_values).dsn)
    expected: dict[str, Any] = {name: f"the {name}" for name in names} | {"port": "5433"}
    assert found == expected | {"host": "127.0.0.1", "user": "ann", "dbname": "shop"}


def test_a_whole_connection_string_is_taken_alone() -> None:
    dsn = "postgresql://ann:secret@127.0.0.1/shop"
    assert read({"name": "shop", "lake.path": "lake", "database.dsn": dsn}).dsn == dsn
    found = problems({"name": "shop", "lake.path": "lake", "database.dsn": dsn, "database.port": "1"})
    assert found == {"database.port": ["is part of database.dsn already: give one of the two"]}


@pytest.mark.parametrize(
    ("properties", "key", "words"),
    [
        ({"lake.retain": "soon"}, "lake.retain", "'soon' is not a time"),
        ({"log.quota": "63MB"}, "log.quota", "'63MB' is not a size of 64MB or more"),
        ({"readers.max": "2", "snapshot.max.threads": "3"}, "snapshot.max.threads", "the same as readers.max"),
        ({"signal.data.collection": "signals"}, "signal.data.collection", "not the whole name of a table"),
        ({"signal.enabled.channels": "file"}, "signal.file", "missing"),
        ({"signal.enabled.channels": "source,kafka"}, "signal.enabled.channels", "signals come from"),
        ({"spark.conf.executor.memory": "2g"}, "spark.conf.executor.memory", "spark.conf.spark.executor.memory"),
        ({"slot.name": "Slot-1"}, "slot.name", "63 lowercase letters"),
        ({"publication.autocreate.mode": "disabled"}, "publication.name", "missing"),
        ({"append.only.tables": "a.b", "publication.name": "p"}, "append.only.tables", "not with publication.name"),
        ({"table.include.list": r"a\.b,a\.\b"}, "table.include.list", r"'a\.\b' cannot be told exactly"),
        ({"table.exclude.list": "secrets"}, "table.exclude.list", "'secrets' names no table"),
        ({"schema.include.list": "a", "table.include.list": "b.c"}, "table.include.list", "names no table in the sch"),
        ({"schema.include.list": "[[a]]"}, "schema.include.list", "cannot be told exactly"),
        ({"lake.path": "a\0b"}, "lake.path", "null character"),
        ({"lake.path": "s3a://bucket/shop"}, "lake.path", "write it as s3://BUCKET/NAME"),
        ({"lake.path": "hdfs://host/shop"}, "lake.path", "it can be a folder, or s3://"),
        ({"lake.path": "a\udcffb"}, "lake.path", "not text in UTF-8"),
    ],
)
def test_what_does_not_fit_together_is_refused(properties: dict[str, str], key: str, words: str) -> None:
    found = problems(SHOP | properties)
    assert list(found) == [key]
    assert words in found[key][0]


@pytest.mark.parametrize(
    ("properties", "warning"),
    [
        ({"publication.autocreate.mode": "filtered"}, None),
        ({"publication.autocreate.mode": "all_tables"}, "a publication of the tables that are copied is made"),
        ({"publication.autocreate.mode": "disabled", "publication.name": "p"}, None),
        ({"publication.autocreate.mode": "filtered", "publication.name": "p"}, "it is neither made nor altered"),
    ],
)
def test_what_is_done_a_little_differently_is_warned_of(properties: dict[str, str], warning: str | None) -> None:
    found = read(SHOP | properties).warnings
    assert len(found) == (warning is not None)
    assert warning is None or warning in found[0]


def test_watermarks_need_a_table_to_be_written_to() -> None:
    strategy = {"incremental.snapshot.watermarking.strategy": "insert_insert"}
    assert list(problems(SHOP | strategy)) == list(strategy)
    elsewhere = {"signal.data.collection": "a.b", "signal.enabled.channels": "file", "signal.file": "f"}
    assert list(problems(SHOP | strategy | elsewhere)) == list(strategy)


def test_all_problems_are_told_at_once_in_one_line_and_by_key() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read({"snapshot.mode": "always", "transforms": "unwrap", "databse.port": "1", "log.quota": "x"})
    problems_found = caught.value.problems
    assert set(problems_found) == {
        *("snapshot.mode", "transforms", "databse.port", "log.quota"),
        *("name", "database.hostname", "database.user", "database.dbname", "lake.path"),
    }
    assert "\n" not in caught.value.message
    assert len(caught.value.lines) == len(problems_found)


def test_a_configuration_that_is_printed_shows_no_connection_string() -> None:
    configuration = read(SHOP | {"database.password": "canary", "spark.conf.spark.hadoop.fs.s3a.secret.key": "canary"})
    assert isinstance(configuration, Configuration)
    assert "canary" not in repr(configuration)
    assert "canary" in configuration.dsn


def problems(properties: dict[str, str]) -> dict[str, list[str]]:
    with pytest.raises(ConfigurationError) as caught:
        read(properties)
    return dict(caught.value.problems)
