"""`tailrace query`: one SQL statement over one cut, printed."""

from __future__ import annotations

import csv
import json
import sys
from enum import Enum
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from rich.console import Console
from rich.table import Table

from tailrace.errors import DefiniteError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.read.cut import Cut, cut
from tailrace.spark.session import session

ROWS_SHOWN = 1000


class Format(Enum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def run_query(lake: Path, sql: str, published: bool, as_of: str | None, style: Format) -> None:
    """Print the rows; the cut they are from goes to standard error."""
    if published and as_of is not None:
        raise DefiniteError("--published and --as-of exclude each other", "leave one out")
    home = LakeHome.find(lake)
    record = home.source()
    assert record is not None
    spark = session(format_named(record.format), home.path / "_tailrace" / "query.log")
    try:
        found = cut(spark, lake, published=published, as_of=as_of, register=False)
        _print(_run(found, sql), style)
        when = f"{found.commit_time:%Y-%m-%d %H:%M:%S.%f} UTC"
        Console(stderr=True).print(
            f"[dim]cut {found.text}, transaction {found.seq:,}, committed {when}[/dim]", highlight=False
        )
    finally:
        spark.stop()


def _run(found: Cut, sql: str) -> DataFrame:
    try:
        frame = found.sql(sql)
        frame.schema  # noqa: B018  resolves the names now, where the error is explained
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise DefiniteError(reason, f"tables: {', '.join(sorted(found.tables))}") from None
    return frame


def _print(frame: DataFrame, style: Format) -> None:
    if style is Format.JSON:
        for row in frame.toLocalIterator():
            print(json.dumps(row.asDict(recursive=True), default=str, ensure_ascii=False))
    elif style is Format.CSV:
        writer = csv.writer(sys.stdout)
        writer.writerow(frame.columns)
        writer.writerows(tuple(row) for row in frame.toLocalIterator())
    else:
        rows = frame.limit(ROWS_SHOWN + 1).collect()
        Console().print(_table(frame.columns, rows[:ROWS_SHOWN]))
        if len(rows) > ROWS_SHOWN:
            Console(stderr=True).print(f"[dim]only the first {ROWS_SHOWN:,} rows; --csv or --json print all[/dim]")


def _table(names: list[str], rows: list[Row]) -> Table:
    table = Table(header_style="bold")
    for index, name in enumerate(names):
        is_number = any(isinstance(row[index], int | float) for row in rows)
        table.add_column(name, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(_text(value) for value in row))
    return table


def _text(value: Any) -> str:
    return "[dim]null[/dim]" if value is None else str(value).replace("[", r"\[")
