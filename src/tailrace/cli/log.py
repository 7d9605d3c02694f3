"""`tailrace log`: look into a transaction log. Nothing here changes a log but `rebuild-index`."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from tailrace.log.consumers import Consumers
from tailrace.log.reader import LogReader
from tailrace.log.survey import describe, kind_name, lag, lsn_text, position_of, records, segments
from tailrace.log.verify import rebuild_index as rebuild
from tailrace.log.verify import unfinished
from tailrace.log.verify import verify as check

app = typer.Typer(no_args_is_help=True)

LogPath = Annotated[Path, typer.Argument(metavar="PATH", help="The log's folder.")]

_SHOWN_MAX = 10


@app.command()
def ls(path: LogPath) -> None:
    """List the segments, the consumers and the pins."""
    reader = LogReader(path)
    table = Table(
        Column("segment", no_wrap=True), "positions", "transactions", "bytes", "index bytes", "created", box=None
    )
    for segment in segments(reader):
        table.add_row(
            segment.path.name,
            f"{segment.position}-{segment.position_stop}",
            f"{segment.after + 1}-{segment.upto}" if segment.upto > segment.after else "none",
            f"{segment.bytes:,}",
            f"{segment.index_bytes:,}",
            _time(segment.created_us),
        )
    console = _console()
    console.print(table)
    _print_consumers(console, reader)


@app.command()
def show(
    path: LogPath,
    seq: Annotated[int | None, typer.Option(help="Only the records of this transaction.")] = None,
    position: Annotated[int | None, typer.Option(help="Start here. Default: the last records.")] = None,
    limit: Annotated[int, typer.Option(help="How many records at most.")] = 50,
) -> None:
    """Print records as they were logged, also those of unfinished transactions."""
    reader = LogReader(path)
    start, stop = position_of(reader, seq) if seq is not None else (position, reader.head.position)
    start = max(0, reader.head.position - limit) if start is None else start
    xid = reader.transactions(seq - 1, seq)["xid"][0].as_py() if seq is not None else None
    table = Table("position", "lsn", "xid", "sub", "kind", "relation", "payload", box=None)
    found = (item for item in records(path, start, stop) if xid is None or item[1]["xid"] == xid)
    for number, record in islice(found, limit):
        kind, payload = int(str(record["kind"])), record["payload"]
        text = describe(kind, payload) if isinstance(payload, bytes) else ""
        cells = [str(number), lsn_text(int(str(record["lsn"]))), str(record["xid"]), str(record["sub_xid"])]
        table.add_row(*cells, kind_name(kind), str(record["relation"]), text)
    _console().print(table)


@app.command()
def verify(path: LogPath) -> None:
    """Check every checksum, and the index against the segments."""
    console = _console()
    report = check(path)
    for problem in report.problems:
        console.print(problem, style="red")
    console.print(
        f"{report.segments} segments, {report.frames} batches, {report.records} records, "
        f"{report.transactions} transactions"
    )
    if report.problems:
        console.print(f"{len(report.problems)} problems", style="red")
        raise typer.Exit(1)
    console.print("every checksum and the index agree", style="green")


@app.command()
def stats(path: LogPath) -> None:
    """Sum up the log: its source, its size, its transactions, finished and active, its consumers."""
    reader = LogReader(path)
    found = segments(reader)
    table = Table(show_header=False, box=None)
    for name, value in sorted(reader.identity.items()):
        table.add_row(name, value)
    table.add_row("head", f"transaction {reader.head.seq}, lsn {reader.head.lsn}, position {reader.head.position}")
    table.add_row("oldest transaction", str(reader.oldest_seq))
    table.add_row("segments", f"{len(found)}, {sum(s.bytes for s in found):,} bytes")
    table.add_row("index", f"{sum(s.index_bytes for s in found):,} bytes")
    finished = reader.transactions(reader.oldest_seq - 1, reader.head.seq)
    table.add_row("changes", f"{sum(finished['changes'].to_pylist()):,}")
    table.add_row("tables", str(len(reader.relations(reader.oldest_seq - 1, reader.head.seq))))
    for xid, first in list(unfinished(path).items())[:_SHOWN_MAX]:
        table.add_row("active", f"xid {xid} since position {first}")
    console = _console()
    console.print(table)
    _print_consumers(console, reader)


@app.command("rebuild-index")
def rebuild_index(path: LogPath) -> None:
    """Write the index anew from the segments. The log must not be written meanwhile."""
    _console().print(f"{rebuild(path)} transactions indexed")


def _print_consumers(console: Console, reader: LogReader) -> None:
    table = Table("consumer", "acknowledged", "", box=None)
    for name, seq in reader.consumers().items():
        table.add_row(name, str(seq), lag(reader, seq))
    for name, seq in Consumers(reader.path).pins().items():
        table.add_row(f"pin {name}", str(seq), "")
    if table.row_count:
        console.print(table)


def _console() -> Console:
    return Console(soft_wrap=True)


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1e6, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
