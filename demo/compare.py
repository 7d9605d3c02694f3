"""Is the lake the source? Row by row, without trusting any code that made the lake.

Source rows are read with plain SQL and lake rows with plain Spark, both as one text per column, chosen by
the lake's column type. The two are compared as multisets, so a row that is there twice is a difference.
Neither side may change meanwhile: the source's writers are stopped and the lake has caught up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from rich import box
from rich.table import Table

import tailrace

Row = tuple[Any, ...]

_OUTPUT_SETTINGS = (
    "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=3 -c bytea_output=hex"
)


@dataclass(frozen=True)
class TableComparison:
    """What differs in one table. `different` counts keys that are on both sides with unequal rows."""

    table: str
    source_rows: int
    lake_rows: int
    missing: int
    extra: int
    different: int
    examples: tuple[str, ...] = ()
    """One source row that the lake has not, one lake row that the source has not."""

    @property
    def equal(self) -> bool:
        return self.missing == self.extra == self.different == 0


def compare(dsn: str, spark: SparkSession, lake: str | Path, tables: Iterable[str]) -> list[TableComparison]:
    """Compares the tables (`namespace.name`) at the last published cut with the source as it is now."""
    cut = tailrace.cut(spark, str(lake), published=True)
    return compare_frames(dsn, {table: cut.tables[table] for table in tables})


def compare_frames(dsn: str, frames: Mapping[str, DataFrame]) -> list[TableComparison]:
    """Compares each frame with the source table it is named after."""
    with psycopg.connect(dsn, options=_OUTPUT_SETTINGS) as connection:
        connection.execute("set transaction isolation level repeatable read read only")
        return [_compare_table(connection, table, frame) for table, frame in frames.items()]


def render(comparisons: Iterable[TableComparison]) -> Table:
    """The comparison for a terminal."""
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("table", no_wrap=True)
    for heading in ("rows in source", "rows in lake", "missing", "extra", "different"):
        table.add_column(heading, justify="right", min_width=max(map(len, heading.split())))
    table.add_column("equal", justify="center")
    for each in comparisons:
        counts = (each.source_rows, each.lake_rows, each.missing, each.extra, each.different)
        mark = "[green]✓[/green]" if each.equal else "[red]✗[/red]"
        table.add_row(each.table, *(f"{count:,}" for count in counts), mark)
    return table


def _compare_table(connection: psycopg.Connection[Row], table: str, frame: DataFrame) -> TableComparison:
    source = Counter(_source_rows(connection, table, frame.schema))
    lake = Counter(_lake_rows(frame))
    only_source, only_lake = source - lake, lake - source
    key = _key_places(connection, table, frame.columns)
    different = (_keys(only_source, key) & _keys(only_lake, key)).total() if key else 0
    return TableComparison(
        table=table,
        source_rows=source.total(),
        lake_rows=lake.total(),
        missing=only_source.total() - different,
        extra=only_lake.total() - different,
        different=different,
        examples=tuple(
            f"only in {side}: {next(iter(rows))}"[:500]
            for side, rows in (("source", only_source), ("lake", only_lake))
            if rows
        ),
    )


def _keys(rows: Counter[Row], places: list[int]) -> Counter[Row]:
    keys: Counter[Row] = Counter()
    for row, count in rows.items():
        keys[tuple(row[place] for place in places)] += count
    return keys


def _key_places(connection: psycopg.Connection[Row], table: str, columns: list[str]) -> list[int]:
    found = connection.execute(
        """
        select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = any (indkey)
        where indrelid = %s::regclass and indisprimary
        """,
        [_quoted(table).as_string()],
    ).fetchall()
    return [columns.index(name) for (name,) in found]


def _source_rows(connection: psycopg.Connection[Row], table: str, shape: t.StructType) -> list[Row]:
    columns = sql.SQL(", ").join(_source_text(field) for field in shape.fields)
    name = _quoted(table)
    found = connection.execute("select relkind = 'p' from pg_class where oid = %s::regclass", [name.as_string()])
    (is_partitioned,) = found.fetchone() or (False,)
    # A table's heirs are tables of their own; its partitions are not.
    only = sql.SQL("") if is_partitioned else sql.SQL("only")
    query = sql.SQL("select {} from {} {}").format(columns, only, name)
    return [tuple(map(_plain, row)) for row in connection.execute(query)]


def _lake_rows(frame: DataFrame) -> Iterable[Row]:
    rows = frame.select([_lake_text(field) for field in frame.schema.fields]).toArrow()
    columns = [[_plain(value) for value in column.to_pylist()] for column in rows.columns]
    return zip(*columns, strict=True)


def _quoted(table: str) -> sql.Identifier:
    """A table as a lake writes it: a part that has a dot or a quote in it is quoted."""
    parts = re.findall(r'"((?:[^"]|"")*)"|([^."]+)', table)
    return sql.Identifier(*(quoted.replace('""', '"') or plain for quoted, plain in parts))


def _source_text(field: t.StructField) -> sql.Composable:
    patterns: dict[type[t.DataType], str] = {
        t.BinaryType: "encode({0}, 'hex')",
        t.TimestampType: "(extract(epoch from {0}) * 1000000)::bigint::text",
        t.DoubleType: "{0}::float8",
        t.FloatType: "{0}::float8",
        # Not a cast: that would take the padding off char(n). A value of a row type may be neither null nor `not null`.
        t.StringType: "case when num_nulls({0}) = 0 then format('%s', {0}) end",
    }
    pattern = patterns.get(type(field.dataType), "{0}::text")
    return sql.SQL(pattern).format(sql.Identifier(field.name))


def _lake_text(field: t.StructField) -> Column:
    column = f.col("`" + field.name.replace("`", "``") + "`")
    match field.dataType:
        case t.BinaryType():
            text = f.lower(f.hex(column))
        case t.TimestampType():
            text = f.unix_micros(column).cast("string")
        case t.DoubleType() | t.FloatType():
            text = column.cast("double")
        case _:
            text = column.cast("string")
    return text.alias(field.name)


def _plain(value: object) -> object:
    """Floats as text, because NaN is not equal to itself and -0.0 is equal to 0.0."""
    return repr(value) if isinstance(value, float) else value
