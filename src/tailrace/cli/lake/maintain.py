"""`tailrace maintain`: the upkeep of a lake by hand, with a line of progress and a table of what it came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from tailrace.cli.console import PlainConsole, print_json, print_table
from tailrace.cli.sizes import size_text
from tailrace.connector.engine import spark_engine
from tailrace.engine.door import Engine, Job, call
from tailrace.errors import DefiniteError, TailraceError
from tailrace.lake.door import ConflictError, LakeTable, Pruned
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.lake.maintenance import Maintenance
from tailrace.lake.retention import Retention
from tailrace.model.lake_address import LakeAddress
from tailrace.model.table import TableId
from tailrace.settings import LOCAL_SPARK, SparkSettings


@dataclass(frozen=True)
class MaintainCommand:
    """What was asked for."""

    retention: Retention
    dry_run: bool = False
    as_json: bool = False
    spark: SparkSettings = LOCAL_SPARK


@dataclass(frozen=True)
class TableUpkeep:
    """What was done for one table."""

    table: TableId
    merges: int
    pruned: Pruned
    error: TailraceError | None = None


@dataclass(frozen=True)
class LakeUpkeep:
    """What was done for a lake."""

    tables: list[TableUpkeep]
    cuts: int
    """How many there were."""
    forgotten: int
    damaged: int
    """Folders of damaged versions."""


def run_maintain(lake: LakeAddress, command: MaintainCommand) -> None:
    """All steps that are due. A table in trouble is told, and the others are seen to."""
    done = _maintained(lake, command)
    if command.as_json:
        print_json(_fields(done))
    else:
        _show(done, PlainConsole(), dry_run=command.dry_run)
    errors = [each.error for each in done.tables if each.error is not None]
    if errors:
        raise errors[0]


def _maintained(lake: LakeAddress, command: MaintainCommand) -> LakeUpkeep:
    console = PlainConsole(stderr=command.as_json)
    home = LakeHome.find(lake)
    holder = home.holder()
    if holder is not None:
        message = f"{home.lake} is in use by another tailrace (pid {holder})"
        raise DefiniteError(message, "a running sync maintains its lake itself; stop it to do so by hand")
    with home.locked(), console.status("looking at the cuts") as status, spark_engine(home, command.spark) as engine:
        maintenance = Maintenance(home, command.retention, command.dry_run)
        before = len(home.cuts.all())
        forgotten = maintenance.forget_cuts()
        done = [_seen_to(home, engine, maintenance, table, status) for table in sorted(home.tables.load())]
        damaged = maintenance.forget_damaged()
        if not command.dry_run:
            home.runs.maintained.touch(0o600)
    return LakeUpkeep(done, before, forgotten, damaged)


def _seen_to(home: LakeHome, engine: Engine, maintenance: Maintenance, table: TableId, status: Status) -> TableUpkeep:
    record = home.source()
    assert record is not None
    stored = format_named(record.format).table(home.place_of(table))
    try:
        if stored.version() is None:
            return TableUpkeep(table, 0, Pruned(0))
        merges = (
            0 if maintenance.dry_run else _merge(engine, table, stored, lambda n: status.update(f"{table}: {n} merged"))
        )
        status.update(f"{table}: looking for what can be deleted")
        return TableUpkeep(table, merges, maintenance.prune(table, stored))
    except TailraceError as error:
        return TableUpkeep(table, 0, Pruned(0), error)


def _merge(engine: Engine, table: TableId, stored: LakeTable, tell: Callable[[int], None]) -> int:
    """As often as it is due. Beside another writer it is left for the next time."""
    count = 0
    job = Job(f"merge files of {table}", f"tailrace maintain {table}")
    try:
        while (merging := stored.maintain()) is not None:
            merging.commit(engine.map(job, [merging.rewrite], call)[0])
            count += 1
            tell(count)
    except ConflictError:
        pass
    return count


def _fields(done: LakeUpkeep) -> dict[str, Any]:
    tables = [
        {
            "table": str(each.table),
            "files_before": each.pruned.files_before,
            "files_after": each.pruned.files_before - each.pruned.files,
            "bytes_freed": each.pruned.bytes,
            "versions_deleted": each.pruned.commits,
            "merges": each.merges,
            "error": None if each.error is None else each.error.message,
        }
        for each in done.tables
    ]
    return {"tables": tables, "cuts": done.cuts, "cuts_forgotten": done.forgotten, "damaged_deleted": done.damaged}


def _show(done: LakeUpkeep, console: Console, *, dry_run: bool) -> None:
    print_table(console, _table(done.tables, dry_run=dry_run))
    would = "would be " if dry_run else ""
    console.print(f"{done.forgotten:,} of {done.cuts:,} cuts {would}forgotten", highlight=False)
    if done.damaged:
        console.print(f"{done.damaged:,} folders of damaged versions {would}deleted", highlight=False)


def _table(done: list[TableUpkeep], *, dry_run: bool) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("table")
    for name in ("files before", "after", "freed", "versions deleted", "merges"):
        table.add_column(name, justify="right")
    for each in done:
        if each.error is not None:
            table.add_row(Text(str(each.table)), Text(each.error.message), style="red")
            continue
        pruned = each.pruned
        files = f"{pruned.files_before:,}", f"{pruned.files_before - pruned.files:,}"
        merges = "" if dry_run else f"{each.merges:,}"
        table.add_row(Text(str(each.table)), *files, size_text(pruned.bytes), f"{pruned.commits:,}", merges)
    return table
