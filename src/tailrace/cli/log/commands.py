"""`tailrace log`: look into a transaction log. Nothing here changes a log but `rebuild-index`.

Exit codes: 0 done, 1 `verify` found something wrong, 2 an error with a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tailrace.cli.app import App
from tailrace.cli.console import PlainConsole, print_json, print_table
from tailrace.cli.errors import shown_errors
from tailrace.cli.log import fields
from tailrace.cli.log.tables import counted, formatter, holder_table, record_table, segment_table, summary_table
from tailrace.cli.options import AsJson, AsLines
from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.log.survey import (
    holders,
    positions,
    positions_of,
    records,
    require_position,
    segments,
    table_names,
    totals,
)
from tailrace.log.verify import Report, unfinished
from tailrace.log.verify import rebuild_index as rebuild
from tailrace.log.verify import verify as check

PAYLOAD_BYTES_ON_TERMINAL = 200
PAYLOAD_BYTES_ELSEWHERE = 10_000

_HELP = """Look into a transaction log: what waits between a source and its lake.

A lake keeps its log in `LAKE/_tailrace/log`. All commands may run while it is being written, except
`rebuild-index`; only that one changes anything.

- A *sequence number* counts finished transactions in commit order, from 1.
- A *position* counts records, from 0. A segment's file is named by its first one.
- A *source position* is the source's own, written as the source writes it: for {name} {position}.
- A *consumer* is a reader that acknowledges, by name, the sequence number up to which it needs nothing more; a *pin*
  keeps everything after a sequence number until a read has ended.

Example: `tailrace log ls ./lake/_tailrace/log`

Exit codes: 0 done, 1 `verify` found something wrong, 2 an error with a hint.
"""

app = App(help=_HELP)


def _number(text: str) -> int:
    """Also as these commands print it: 1,204."""
    return int(text.replace(",", ""))


LogPath = Annotated[Path, typer.Argument(metavar="PATH", help="The log's folder: LAKE/_tailrace/log.")]


@app.command()
def ls(path: LogPath, as_json: AsJson = False) -> None:
    """List the segments, the consumers and the pins.

    One line a segment, oldest first: how many records it holds, the last sequence number that was given to a
    transaction in it, its size with its index. Then who needs what: a consumer has acknowledged everything up to its
    sequence number, a pin keeps everything after its own. A segment is deleted when no consumer, no pin and no
    unfinished transaction needs it.

    Example: `tailrace log ls ./lake/_tailrace/log`

    Exit codes: 0 done, 2 an error with a hint.
    """
    with _explained(path):
        reader = LogReader(path)
        if as_json:
            print_json({"segments": fields.of_segments(segments(reader)), **fields.of_holders(holders(reader))})
            return
        console = _console()
        print_table(console, segment_table(segments(reader)))
        _print_holders(console, reader)


@app.command()
def show(
    path: LogPath,
    seq: Annotated[
        int | None,
        typer.Option(parser=_number, metavar="N", help="Only the records of the transaction with this number."),
    ] = None,
    position: Annotated[
        int | None, typer.Option(parser=_number, metavar="N", help="Start at this record. Default: the last records.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="How many records at most.")] = 50,
    as_json: AsLines = False,
) -> None:
    """Print records as they were logged, also those of unfinished transactions.

    A position is a record's place in the log; a source position is where the source was. A sequence number is a
    transaction's place in commit order; its records may lie between those of others, and `--seq` picks them out. What
    is not text in a payload is shown as `\\xNN`.

    Example: `tailrace log show ./lake/_tailrace/log --seq 1204`

    Exit codes: 0 done, 2 an error with a hint.
    """
    with _explained(path):
        if limit < 1:
            raise DefiniteError(f"--limit {limit} is too small: it must be 1 or more", "--limit 50")
        if seq is not None and position is not None:
            raise DefiniteError("--seq and --position exclude each other", "leave one out")
        reader = LogReader(path)
        chosen = islice(_wanted(reader, seq, position, limit), limit)
        names, written = table_names(reader), formatter(reader.identity)
        if as_json:
            for each, record in chosen:
                print_json(fields.of_record(each, record, names, written), is_line=True)
            return
        console = _console()
        payload_bytes_max = PAYLOAD_BYTES_ON_TERMINAL if console.is_terminal else PAYLOAD_BYTES_ELSEWHERE
        print_table(console, record_table(list(chosen), names, written, payload_bytes_max))


def _wanted(
    reader: LogReader, seq: int | None, position: int | None, limit: int
) -> Iterator[tuple[int, dict[str, object]]]:
    if seq is not None:
        start, stop = positions_of(reader, seq)
        xid = reader.transactions(seq - 1, seq)["xid"][0].as_py()
        return (item for item in records(reader.path, start, stop) if item[1]["xid"] == xid)
    if position is not None:
        require_position(reader, position)
    oldest, stop = positions(reader)
    return records(reader.path, max(oldest, stop - limit) if position is None else position, stop)


@app.command()
def verify(path: LogPath, as_json: AsJson = False) -> None:
    """Check every checksum, and the index against the segments.

    Reads the whole log, as far as it was durable at the start, and prints a line for each problem that names the file.
    A damaged index can be derived again, with `tailrace log rebuild-index`; a damaged segment cannot.

    Example: `tailrace log verify ./lake/_tailrace/log && echo sound`

    Exit codes: 0 all is well, 1 something is wrong, 2 an error with a hint.
    """
    with _explained(path):
        console = _console()
        report = _verified(path)
        if as_json:
            hint = _remedy(path, report.problems) if report.problems else None
            print_json({"sound": not report.problems, **asdict(report), "hint": hint})
            raise typer.Exit(1 if report.problems else 0)
        for problem in report.problems:
            console.print(Text(problem, style="red"), soft_wrap=True)
        console.print(
            f"{counted(report.segments, 'segment')}, {counted(report.frames, 'frame')}, "
            f"{counted(report.records, 'record')}, {counted(report.transactions, 'transaction')}"
        )
        if report.problems:
            console.print(counted(len(report.problems), "problem"), style="red")
            console.print(Text.assemble(("hint: ", "cyan"), _remedy(path, report.problems)), soft_wrap=True)
            raise typer.Exit(1)
        console.print("every checksum and the index agree", style="green")


def _verified(path: Path) -> Report:
    with _bar("verifying") as on_segment:
        try:
            return check(path, on_segment)
        except DefiniteError as error:
            return Report(problems=[error.message])


def _remedy(path: Path, problems: list[str]) -> str:
    if all(problem.startswith("index ") or ": the index " in problem for problem in problems):
        return f"tailrace log rebuild-index {quote(str(path))}"
    return "restore the damaged files from a copy, or start a new lake in an empty folder"


@app.command()
def stats(path: LogPath, as_json: AsJson = False) -> None:
    """Sum up the log: its source, its head, its size, its transactions, its consumers.

    The head is how far the log is durable: the newest sequence number, and the position of the next record. The source
    position is how far the source had got there. Active transactions have neither committed nor been rolled back; the
    oldest of them keeps its segment from being deleted, and so does the consumer that is furthest behind.

    Example: `tailrace log stats ./lake/_tailrace/log`

    Exit codes: 0 done, 2 an error with a hint.
    """
    with _explained(path):
        reader = LogReader(path)
        active, written = unfinished(path), formatter(reader.identity)
        if as_json:
            of_log = fields.of_log(reader, segments(reader), totals(reader), written)
            begun = [{"xid": xid, "position": first} for xid, first in active.items()]
            print_json({**of_log, "active": begun, **fields.of_holders(holders(reader))})
            return
        console = _console()
        print_table(console, summary_table(reader, segments(reader), totals(reader), active, written))
        _print_holders(console, reader)


@app.command("rebuild-index")
def rebuild_index(path: LogPath) -> None:
    """Write the index again from the segments.

    For an index that `tailrace log verify` finds wrong. No process may write the log meanwhile: stop `tailrace sync`
    first.
    Segments are only read; sequence numbers and positions stay as they are.

    Example: `tailrace log rebuild-index ./lake/_tailrace/log`

    Exit codes: 0 done, 2 an error with a hint.
    """
    with _explained(path, doing="write in"):
        with _bar("indexing") as on_segment:
            count = rebuild(path, on_segment)
        _console().print(f"{counted(count, 'transaction')} indexed")


@contextmanager
def _explained(path: Path, doing: str = "read") -> Iterator[None]:
    """What can go wrong with a log at `path` becomes one line and a hint."""
    with shown_errors():
        try:
            _require_log(path)
            yield
        except DefiniteError as error:
            raise DefiniteError(error.message, error.hint or f"tailrace log verify {quote(str(path))}") from None
        except PermissionError as error:
            hint = "run it as the user who runs tailrace sync"
            raise DefiniteError(f"cannot {doing} {error.filename or path}: permission denied", hint) from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            hint = f"see what is there: ls -la {quote(str(path))}; df {quote(str(path))}"
            raise DefiniteError(f"cannot {doing} {error.filename or path}: {reason}", hint) from None


def _require_log(path: Path) -> None:
    if not path.exists():
        raise DefiniteError(f"{path} does not exist", "a lake keeps its log in LAKE/_tailrace/log")
    if not path.is_dir():
        raise DefiniteError(f"{path} is a file, not a log's folder", "name the folder that holds log.json")
    inner = path / "_tailrace" / "log"
    if (inner / "log.json").exists():
        raise DefiniteError(f"{path} is a lake; its log is in {inner}", f"tailrace log ls {quote(str(inner))}")
    if not (path / "log.json").exists():
        raise DefiniteError(f"{path} is not a log", "name the folder that holds log.json: LAKE/_tailrace/log")


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Progress by segments, on a terminal only; gone when it is done."""
    console = PlainConsole(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("segments"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _print_holders(console: Console, reader: LogReader) -> None:
    table = holder_table(holders(reader))
    if table.row_count:
        console.print()
        print_table(console, table)


def _console() -> Console:
    return PlainConsole(highlight=False, markup=False)
