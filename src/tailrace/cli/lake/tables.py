"""`tailrace tables`: the state of every table of a lake, and which of them are copied, or copied again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tailrace.cli.app import App, CommandGroup
from tailrace.cli.completion import lake_tables
from tailrace.cli.console import PlainConsole, print_json, print_table
from tailrace.cli.errors import shown_errors
from tailrace.cli.options import AsJson, Lake
from tailrace.errors import DefiniteError
from tailrace.model.lake_address import LakeAddress
from tailrace.model.table_state import TableState

if TYPE_CHECKING:
    from tailrace.connector.status import LakeStatus, LakeTableStatus
    from tailrace.lake.home import LakeHome
    from tailrace.model.table_state import TableRecord


class ListByDefault(CommandGroup):
    """`tailrace tables LAKE` is short for `tailrace tables list LAKE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = App(
    help="Show the tables of a lake (`tailrace tables LAKE`), take some in or leave them out, or copy one again.",
    cls=ListByDefault,
)

STYLES = {
    TableState.LIVE: "green",
    TableState.ERRORED: "red",
    TableState.RESYNCING: "yellow",
    TableState.SNAPSHOTTING: "yellow",
    TableState.PENDING: "yellow",
    TableState.REMOVED: "dim",
}


@app.command("list")
def list_tables(lake: Lake, as_json: AsJson = False) -> None:
    """Show each table's state, how many changes it is behind, why, and what helps.

    Exit code 1 when a table is in error.

        tailrace tables ./lake
    """
    with shown_errors():
        from tailrace.connector.status import lake_status
        from tailrace.lake.home import LakeHome

        status = lake_status(LakeHome.find(lake))
        if as_json:
            print_json(_fields(status))
        else:
            _print(status)
        if any(each.record.state is TableState.ERRORED for each in status.tables):
            raise typer.Exit(1)


def _print(status: LakeStatus) -> None:
    console = PlainConsole()
    print_table(console, _table(status.tables))
    for each in status.tables:
        _explain(console, each)
    console.print(Text(f"\n{_connector(status)}", style="dim"), soft_wrap=True)


def _fields(status: LakeStatus) -> dict[str, Any]:
    """With the names that the server gives them. `state` is null where the connector may be elsewhere."""
    is_here = status.is_here
    return {
        "connector": {
            "state": status.state if is_here else None,
            "reason": status.reason if is_here else None,
            "process": status.holder,
        },
        "tables": [
            {
                "table": str(each.table),
                "state": each.record.state,
                "changes_behind": each.changes_behind,
                "reason": _reason(each.record),
                "hint": each.record.hint,
                "copies": each.record.copy,
            }
            for each in status.tables
        ],
    }


def _connector(status: LakeStatus) -> str:
    if not status.is_here:
        return "the lake's home is not on this machine: its connector, if one runs, is elsewhere"
    running = f"running as process {status.holder}" if status.holder else "not running"
    why = f": {status.reason}" if status.reason else ""
    return f"connector {status.state}{why}, {running}"


def _table(tables: list[LakeTableStatus]) -> Table:
    shown = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("table", overflow="fold")
    shown.add_column("state", no_wrap=True)
    shown.add_column("changes behind", justify="right", no_wrap=True)
    for each in tables:
        behind = "" if each.changes_behind is None else f"{each.changes_behind:,}"
        state = Text(each.record.state, style=STYLES[each.record.state])
        shown.add_row(Text(str(each.table)), state, behind)
    return shown


def _explain(console: Console, each: LakeTableStatus) -> None:
    """Why a table is not live, and what helps; of one that is, what a reader may not expect of it."""
    record = each.record
    reason = _reason(record)
    if reason is None:
        return
    heading = Text.assemble("\n", (str(each.table), "bold"), " is ", (record.state, STYLES[record.state]))
    console.print(heading, soft_wrap=True)
    console.print(Text(f"  {reason}"), soft_wrap=True)
    if record.hint:
        console.print(Text.assemble(("  hint: ", "cyan"), record.hint), soft_wrap=True)


def _reason(record: TableRecord) -> str | None:
    return record.reason or (record.text_key.reason if record.text_key is not None else None)


Pattern = Annotated[
    str, typer.Argument(help="Which tables, as for sync: 'public.*', orders.", autocompletion=lake_tables)
]


@app.command()
def include(lake: Lake, pattern: Pattern) -> None:
    """Copy more tables into a lake, beside what runs and from now on.

    Of several patterns that name a table, the last one that was included or excluded decides. They hold for every later
    sync of this lake too, whatever its --tables and --exclude say.

        tailrace tables include ./lake 'sales.*'
    """
    _choose(lake, pattern, is_taken=True)


@app.command()
def exclude(lake: Lake, pattern: Pattern) -> None:
    """Leave tables out of a lake from now on. What has been copied stays on disk and is no longer part of new cuts.

    tailrace tables exclude ./lake public.scratch
    """
    _choose(lake, pattern, is_taken=False)


def _choose(lake: LakeAddress, pattern: str, *, is_taken: bool) -> None:
    with shown_errors():
        from tailrace.lake.home import LakeHome
        from tailrace.lake.records.choices import Choice

        home = LakeHome.find(lake)
        home.choices.add(Choice(pattern, is_taken))
        known = [str(table) for table in sorted(home.tables.load()) if table.matches(pattern)]
        what = ", ".join(known) or "what the database has of that name"
        will = "be copied" if is_taken else "be left out"
        console = PlainConsole(soft_wrap=True)
        console.print(f"'{pattern}' ({what}) will {will} by {_taker(home)}", highlight=False, markup=False)


def _taker(home: LakeHome) -> str:
    holder = home.holder()
    return f"the running sync (process {holder})" if holder else "the next tailrace sync"


@app.command()
def resync(
    lake: Lake,
    table: Annotated[str, typer.Argument(help="The table, as namespace.name.", autocompletion=lake_tables)],
) -> None:
    """Copy one table again beside the others, which continue meanwhile.

    The running sync does it at once; otherwise the next one. Until then the last good version stays readable.

        tailrace tables resync ./lake public.orders
    """
    with shown_errors():
        from tailrace.connector.signals.sender import send_resync
        from tailrace.lake.home import LakeHome

        home = LakeHome.find(lake)
        chosen = home.table_named(table)
        if home.tables.load()[chosen].state is TableState.REMOVED:
            raise DefiniteError(f"{chosen} is left out of this lake", "run tailrace sync so that it chooses the table")
        send_resync(home.lake, chosen)
        PlainConsole().print(f"{chosen} will be copied again by {_taker(home)}", highlight=False, markup=False)
