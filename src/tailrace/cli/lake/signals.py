"""`tailrace signal` and `tailrace signals`: ask something of a lake's connector, and see what became of it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tailrace.cli.completion import lake_tables
from tailrace.cli.console import PlainConsole, print_json, print_table
from tailrace.cli.errors import shown_errors
from tailrace.cli.options import AsLines, Lake
from tailrace.errors import DefiniteError

if TYPE_CHECKING:
    from tailrace.lake.home import LakeHome
    from tailrace.model.notification import Notification
    from tailrace.model.signal import SignalRecord


class SignalType(StrEnum):
    """What can be asked."""

    EXECUTE = "execute-snapshot"
    PAUSE = "pause-snapshot"
    RESUME = "resume-snapshot"
    STOP = "stop-snapshot"
    LOG = "log"


STYLES = {"done": "green", "running": "yellow", "paused": "yellow", "rejected": "red", "failed": "red"}


def signal(  # noqa: PLR0913, PLR0917  each is an option
    lake: Lake,
    type: Annotated[SignalType, typer.Argument(metavar="TYPE", help=", ".join(SignalType))],
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A table's whole name, or a regular expression for whole names. Repeatable.",
            autocompletion=lake_tables,
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option("--type", help="incremental (the default) or blocking.")] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE=SQL", help="Copy only the rows of a table for which this is true. Repeatable."),
    ] = None,
    surrogate_key: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Order rows by this column instead of the key.")
    ] = None,
    message: Annotated[str | None, typer.Option(help="With log: the line to write.")] = None,
    data: Annotated[str | None, typer.Option(metavar="JSON", help="All of it as Debezium's JSON instead.")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="The signal's id; the same one twice does nothing.")] = None,
) -> None:
    """Ask something of a lake's connector: the running one, or the next.

    The signal is on disk when this returns. `tailrace signals LAKE` shows what became of it. Exit code 2 for one that
    makes no sense; nothing is written then.

        tailrace signal ./lake execute-snapshot --table shop.orders --table 'shop\\.item.*'
        tailrace signal ./lake execute-snapshot --table shop.orders --condition 'shop.orders=total > 10' --id again-7
        tailrace signal ./lake execute-snapshot --data '{"data-collections": ["shop.orders"], "type": "blocking"}'
        tailrace signal ./lake pause-snapshot
        tailrace signal ./lake resume-snapshot --table shop.orders
        tailrace signal ./lake stop-snapshot
        tailrace signal ./lake log --message 'the copy of May begins'
    """
    with shown_errors():
        from tailrace.connector.signals import sender
        from tailrace.lake.home import LakeHome

        given: dict[str, Any] = {
            "data-collections": table,
            "type": kind,
            "additional-conditions": [_condition(each) for each in condition] if condition else None,
            "surrogate-key": surrogate_key,
            "message": message,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if data is not None and given:
            raise DefiniteError("--data has everything already", "leave out the other options, or --data")
        home = LakeHome.find(lake)
        known = {record.signal.id: record.state for record in sender.lake_signals(home)}
        sent = sender.signal(lake, type, given if data is None else data, id_)
        if sent in known:
            line = f"signal {sent} is known and {known[sent]}: nothing is done again"
            PlainConsole().print(line, highlight=False, markup=False, soft_wrap=True)
            return
        _tell_taker(home, sent)
        _warn(home, table or [])


def _condition(text: str) -> dict[str, str]:
    table, is_there, condition = text.partition("=")
    if not is_there:
        raise DefiniteError(f"--condition {text} has no table", "write --condition 'shop.orders=total > 10'")
    return {"data-collection": table.strip(), "filter": condition.strip()}


def _tell_taker(home: LakeHome, id_: str) -> None:
    holder = home.holder()
    who = f"goes to the running sync (process {holder})" if holder else "waits for the next tailrace sync"
    PlainConsole().print(f"signal {id_} {who}", highlight=False, markup=False, soft_wrap=True)


def _warn(home: LakeHome, patterns: list[str]) -> None:
    """A name that means no table now may mean one when the signal is taken up; a misspelt one never does."""
    from tailrace.connector.signals.orders import match

    for pattern in match(patterns, list(home.tables.load()))[1]:
        console = PlainConsole(stderr=True, highlight=False, markup=False, soft_wrap=True)
        console.print(f"note: {pattern} matches no table of the lake at present", style="yellow")


def signals(lake: Lake, as_json: AsLines = False) -> None:
    """Show every signal of a lake that is kept, oldest first, and what became of it.

    Reads files only, whether or not a sync runs. Kept are all that have not ended, and the last thousand others. Of one
    that runs, the result is how far it is.

        tailrace signals ./lake
        tailrace signals ./lake --json
    """
    with shown_errors():
        from tailrace.connector.signals.sender import lake_signals
        from tailrace.lake.home import LakeHome

        home = LakeHome.find(lake)
        records = lake_signals(home)
        if as_json:
            for record in records:
                print_json(_fields(record), is_line=True)
            return
        last = {each.signal: each for each in home.signals.notifications.all()}
        print_table(PlainConsole(), _table(records, last))


def _fields(record: SignalRecord) -> dict[str, Any]:
    times = {"received": _time(record.received_us), "updated": _time(record.updated_us)}
    return asdict(record.signal) | {"channel": record.channel, "state": record.state, "result": record.result} | times


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _table(records: list[SignalRecord], last: dict[str | None, Notification]) -> Table:
    shown = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("id", "type", "tables", "state", "since", "result"):
        shown.add_column(name, overflow="fold")
    for record in records:
        cells = [record.signal.id, record.signal.type, _tables(record)]
        state = Text(record.state, style=STYLES.get(record.state, ""))
        since, result = _time(record.updated_us), _result(record, last.get(record.signal.id))
        shown.add_row(*map(Text, cells), state, since, Text(result))
    return shown


def _tables(record: SignalRecord) -> str:
    from tailrace.connector.signals.orders import Log, Rejection, order_of

    order = order_of(record.signal)
    return "" if isinstance(order, (Log, Rejection)) else ", ".join(order.tables) or "all"


def _result(record: SignalRecord, last: Notification | None) -> str:
    """Of one that has not ended: how far it is."""
    if record.result is not None or last is None or record.has_ended:
        return record.result or ""
    table = f"{last.table}: " if last.table else ""
    return f"{table}{last.rows:,} rows, {last.chunks:,} chunks"
