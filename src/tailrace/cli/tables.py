"""`tailrace tables`: the state of every table of a lake, and asking for one to be copied again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from tailrace.cli.errors import shown_errors
from tailrace.errors import DefiniteError
from tailrace.model.table_state import TableState

if TYPE_CHECKING:
    from tailrace.connector.tables import TableStatus


class ListByDefault(TyperGroup):
    """`tailrace tables LAKE` is short for `tailrace tables list LAKE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    help="Show the tables of a lake (`tailrace tables LAKE`), or copy one again.",
    cls=ListByDefault,
    no_args_is_help=True,
    add_completion=False,
)

Lake = Annotated[Path, typer.Argument(help="The lake's folder.")]
STYLES = {
    TableState.LIVE: "green",
    TableState.ERRORED: "red",
    TableState.RESYNCING: "yellow",
    TableState.SNAPSHOTTING: "yellow",
    TableState.PENDING: "yellow",
    TableState.REMOVED: "dim",
}


@app.command("list")
def list_tables(lake: Lake) -> None:
    """Show each table's state, how many changes it is behind, why, and what helps.

    Exit code 1 when a table is in error.

        tailrace tables ./lake
    """
    with shown_errors():
        from tailrace.connector.tables import lake_status

        status = lake_status(lake)
        console = Console()
        console.print(_table(status.tables))
        for each in status.tables:
            _explain(console, each)
        running = f"running as process {status.holder}" if status.holder else "not running"
        why = f": {status.reason}" if status.reason else ""
        console.print(f"\nconnector {status.state}{why}, {running}", style="dim", highlight=False, soft_wrap=True)
        if any(each.record.state is TableState.ERRORED for each in status.tables):
            raise typer.Exit(1)


def _table(tables: list[TableStatus]) -> Table:
    shown = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("table", overflow="fold")
    shown.add_column("state", no_wrap=True)
    shown.add_column("changes behind", justify="right", no_wrap=True)
    for each in tables:
        behind = "" if each.changes_behind is None else f"{each.changes_behind:,}"
        state = Text(each.record.state, style=STYLES[each.record.state])
        shown.add_row(Text(str(each.table)), state, behind)
    return shown


def _explain(console: Console, each: TableStatus) -> None:
    """Why a table is not live, and what helps."""
    record = each.record
    if record.reason is None:
        return
    heading = Text.assemble("\n", (str(each.table), "bold"), " is ", (record.state, STYLES[record.state]))
    console.print(heading, soft_wrap=True)
    console.print(Padding(Text(record.reason), (0, 0, 0, 2)))
    if record.hint:
        console.print(Padding(Text.assemble(("hint: ", "cyan"), record.hint), (0, 0, 0, 2)))


@app.command()
def resync(lake: Lake, table: Annotated[str, typer.Argument(help="The table, as namespace.name.")]) -> None:
    """Copy one table again beside the others, which continue meanwhile.

    The running sync does it at once; otherwise the next one. Until then the last good version stays readable.

        tailrace tables resync ./lake public.orders
    """
    with shown_errors():
        from tailrace.lake.home import LakeHome

        home = LakeHome.find(lake)
        found = home.table_named(table)
        if home.tables.load()[found].state is TableState.REMOVED:
            raise DefiniteError(f"{found} is left out of this lake", "run tailrace sync so that it chooses the table")
        home.requests.ask_resync(found)
        holder = home.holder()
        who = f"the running sync (process {holder})" if holder else "the next tailrace sync"
        Console().print(f"{found} will be copied again by {who}", highlight=False, markup=False)
