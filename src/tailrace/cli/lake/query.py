"""`tailrace query`: one SQL statement over one cut, or over every new one, printed."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from tailrace import ending
from tailrace.cli.console import PlainConsole, fitting, print_table, print_wide
from tailrace.errors import DefiniteError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import LakeAddress
from tailrace.read.cut import Cut, cut
from tailrace.read.values import json_value, plain
from tailrace.settings import LOCAL_SPARK, SparkSettings
from tailrace.without_pandas import keep_pandas_out

ROWS_SHOWN = 1000
WIDTH_MIN = 8
"""Of a column that is cut to fit a terminal. With very many columns, lines are longer than the terminal instead."""
BORDERS = 3
"""What a column takes beside its values."""
FOLLOW_SECONDS = 0.1
"""How often to look for a new cut. To look reads one small file."""


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True)
class QueryCommand:
    """What was asked, and which lake."""

    lake: LakeAddress
    sql: str
    in_spark: bool
    style: Format
    published: bool = False
    as_of: str | None = None
    spark: SparkSettings = LOCAL_SPARK

    def cut(self, session: Any) -> Cut[Any]:
        return cut(session, self.lake, published=self.published, as_of=self.as_of, register=False)


def run_query(query: QueryCommand, *, follow: bool = False) -> None:
    """Print the rows; the cut they are from goes to standard error. With `follow`, again for every new cut until
    Ctrl-C."""
    if not query.sql.strip(" \t\r\n;"):
        raise DefiniteError("there is no query", "for example: tailrace query ./lake 'show tables'")
    if query.as_of is not None and (query.published or follow):
        other = "--published" if query.published else "--follow"
        raise DefiniteError(f"{other} and --as-of exclude each other", "leave one out")
    if not query.in_spark and query.spark != LOCAL_SPARK:
        raise DefiniteError("settings of Spark have no effect in DuckDB", "use Spark: --engine spark")
    home = LakeHome.find(query.lake)
    with _session(query, home) as session:
        cut = query.cut(session)
        answer(query, cut)
        if follow:
            # From here on Ctrl-C is the way to end it.
            ending.on_interrupt("", code=0)
            follow_cuts(query, home, cut, session)


def follow_cuts(query: QueryCommand, home: LakeHome, shown: Cut[Any], session: Any) -> None:
    """Answer at every cut after the one that is shown, until Ctrl-C."""
    seen = None
    while True:
        standing = home.runs.vouched.load(), home.cuts.mark
        if standing == seen:
            time.sleep(FOLLOW_SECONDS)
            continue
        seen, cut = standing, query.cut(session)
        # What was only published since shows the same rows, unless a table was copied, came or went.
        if (cut.seq, cut.tables.copies) != (shown.seq, shown.tables.copies):
            answer(query, cut, is_first=False)
            shown = cut


@contextmanager
def _session(query: QueryCommand, home: LakeHome) -> Iterator[Any]:
    """A DuckDB connection or a Spark session of our own. Only what is asked for is loaded."""
    if not query.in_spark:
        keep_pandas_out()
        from tailrace.read.duckdb import connect_for

        with connect_for(query.sql) as connection:
            yield connection
        return
    from tailrace.engine.spark.session import session

    record = home.source()
    assert record is not None
    log_path = home.folder / "query.log"
    spark = session(format_named(record.format), log_path, settings=query.spark, lake=home.shared_folder)
    try:
        yield spark
    finally:
        spark.stop()


def answer(query: QueryCommand, cut: Cut[Any], *, is_first: bool = True) -> None:
    """Print the rows of one cut, then which cut it is."""
    try:
        frame = cut.sql(query.sql)
        names = cut.engine.columns(frame)
        _PRINTERS[query.style](names, lambda rows_max=None: cut.engine.rows(frame, rows_max), is_first)
    except cut.engine.errors as error:
        reason = str(error).strip().splitlines()[0]
        hint = f"tables: {', '.join(sorted(cut.tables))}"
        if not query.in_spark and "`" in query.sql:
            hint = "DuckDB wants names in double quotes; --engine spark takes backticks"
        raise DefiniteError(reason, hint) from None
    sys.stdout.flush()
    when = f"{cut.commit_time:%Y-%m-%d %H:%M:%S.%f} UTC"
    line = f"[dim]cut {cut.text}, transaction {cut.seq:,}, committed {when}[/dim]"
    notes = PlainConsole(stderr=True)
    notes.print(line, highlight=False)
    if cut.note is not None:
        notes.print(f"[dim]{cut.note}[/dim]", highlight=False, soft_wrap=True)


Rows = Callable[..., Iterator[tuple[Any, ...]]]
"""The rows; at most this many if a number is given."""


def print_json(names: list[str], rows: Rows, is_first: bool) -> None:
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise DefiniteError(
            f"two columns are called {twice}: a JSON object can have only one of them", "name one of them with: as …"
        )
    for row in rows():
        values = map(json_value, row)
        print(json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False, allow_nan=False))


def print_csv(names: list[str], rows: Rows, is_first: bool) -> None:
    writer = csv.writer(sys.stdout)
    if is_first:
        writer.writerow(names)
    writer.writerows(map(plain, row) for row in rows())


def print_rows(names: list[str], rows: Rows, is_first: bool) -> None:
    first = list(rows(ROWS_SHOWN + 1))
    console, notes = PlainConsole(), PlainConsole(stderr=True, highlight=False)
    widths = [max(map(_width, column)) for column in zip(names, *first[:ROWS_SHOWN], strict=True)]
    room = fitting(widths, console.width - 1 - BORDERS * len(names))
    width_max = max(room, WIDTH_MIN)
    table = _table(names, first[:ROWS_SHOWN], width_max if console.is_terminal else None)
    (print_table if room >= WIDTH_MIN else print_wide)(console, table)
    if console.is_terminal and max(widths, default=0) > width_max:
        notes.print("[dim]wide values are cut; --csv, --json or a pipe (| less -S) print them in full[/dim]")
    if len(first) > ROWS_SHOWN:
        notes.print(f"[dim]only the first {ROWS_SHOWN:,} rows; --csv or --json print all[/dim]")


def _width(value: Any) -> int:
    return max(map(cell_len, _text(value).plain.splitlines()), default=0)


_PRINTERS = {Format.JSON: print_json, Format.CSV: print_csv, Format.TABLE: print_rows}


def _table(names: list[str], rows: list[tuple[Any, ...]], width_max: int | None) -> Table:
    table = Table(header_style="bold")
    for index, name in enumerate(names):
        is_number = any(isinstance(row[index], int | float) for row in rows)
        table.add_column(Text(name), justify="right" if is_number else "left", no_wrap=True, max_width=width_max)
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _text(value: Any) -> Text:
    """What a row has is shown as it is: brackets and colons in it mean nothing."""
    return Text("null", style="dim") if value is None else Text(str(plain(value)))
