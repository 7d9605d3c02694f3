"""`tailrace offsets`: read and edit how far a lake has got, take over from Debezium, and check offsets of any kind."""

from __future__ import annotations

import getpass
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tailrace.cli.app import App
from tailrace.cli.console import PlainConsole, print_json, print_table
from tailrace.cli.errors import shown_errors
from tailrace.cli.given import Given
from tailrace.cli.options import AsJson, AsLines, Lake
from tailrace.errors import DefiniteError
from tailrace.offsets.kinds import KINDS

if TYPE_CHECKING:
    from tailrace.connector.offsets.editor import Assessment, OffsetEdit
    from tailrace.connector.offsets.takeover import Takeover
    from tailrace.source.door.source import Source

_POSITIONS = {
    "log": "the lake's log ends at {}",
    "lake": "the lake is published up to {}",
    "edit": "the edit goes to {}",
    "source": "the source has written up to {}",
    "kept": "the source keeps changes from {} on",
}
"""Every position that an assessment has, as a line."""

app = App(help="Offsets: how far a lake has got.", rich_markup_mode="markdown")

Content = Annotated[str, typer.Argument(metavar="FILE|JSON", help="A file, - for standard input, or JSON itself.")]
Kind = Annotated[str, typer.Argument(help=f"{', '.join(KINDS)}.")]
SourceDsn = Annotated[str | None, typer.Option("--dsn", help="The database, to compare with what it can still send.")]
Server = Annotated[str | None, typer.Option(help="The partition's name. Default: the imported one, or the database's.")]
Version = Annotated[int | None, typer.Option(help="The edit that you have seen last: fails if there is another.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing; print what would follow.")]


@app.command()
def get(lake: Lake, dsn: SourceDsn = None, server: Server = None) -> None:
    """Print a lake's offsets, as Kafka Connect's REST does.

    Reads files only, whether or not a sync runs. An edit that waits for the next start shows already.

        tailrace offsets get ./lake
    """
    with shown_errors():
        from tailrace.connector.offsets import editor

        offset = editor.read(lake, _source(dsn), server)
        typer.echo(json.dumps(offset.to_wire(), indent=2))
        if offset.is_waiting:
            _note(f"edit {offset.version} waits for the next tailrace sync")
        if offset.served is not None:
            facts = ", ".join(f"{name} {value}" for name, value in offset.served.facts.items())
            _note("; ".join(filter(None, [facts, offset.served.problem])))


@app.command("set")
def set_(  # noqa: PLR0913, PLR0917  each is an option
    lake: Lake,
    content: Content,
    dsn: SourceDsn = None,
    server: Server = None,
    version: Version = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Set a lake's offset, while no sync runs. The next sync takes it up.

    Forward: what lies in between is never logged, so the next sync copies every table again by windows. Backward: the
    log has it already and nothing changes. What the source cannot send is refused. An offset of null is a reset.

    Exit code 0 when it was set, or could be; 2 when it cannot.

        tailrace offsets get ./lake > offsets.json
        tailrace offsets set ./lake offsets.json --dsn {dsn} --dry-run
    """
    with shown_errors():
        from tailrace.connector.offsets import editor
        from tailrace.offsets.layout import OffsetFaultsError

        body, source = _json(_bytes(content)), _source(dsn)
        assessment = editor.assess(lake, body, source, server)
        _show(assessment, is_compared=source is not None, as_json=as_json)
        if assessment.faults:
            for fault in assessment.faults[1:]:
                _note(f"also: {fault}")
            raise OffsetFaultsError(assessment.faults)
        if not dry_run:
            seen = assessment.version if version is None else version
            done = editor.apply(lake, body, _who(), source, server, seen)
            if not as_json:
                _tell(done, as_json=False)


@app.command()
def reset(lake: Lake, dry_run: DryRun = False, version: Version = None, as_json: AsJson = False) -> None:
    """Forget the position: the next sync copies every table again by windows. Nothing is skipped.

    tailrace offsets reset ./lake --dry-run
    """
    with shown_errors():
        from tailrace.connector.offsets import editor

        now = editor.read(lake)
        if dry_run:
            _show(editor.assess_reset(lake), is_compared=True, as_json=as_json)
            return
        _tell(editor.reset(lake, _who(), version=now.version if version is None else version), as_json=as_json)


@app.command()
def history(lake: Lake, as_json: AsLines = False) -> None:
    """Show every edit of a lake's offset: who made it, when, what it did, and what became of it.

    tailrace offsets history ./lake
    """
    with shown_errors():
        from tailrace.connector.offsets import editor

        edits = editor.history(lake)
        if as_json:
            for edit in edits:
                print_json(_fields(edit), is_line=True)
            return
        print_table(PlainConsole(), _table(edits))


@app.command()
def undo(lake: Lake, dry_run: DryRun = False, version: Version = None, as_json: AsJson = False) -> None:
    """Take the last edit back, where that is still possible.

    One that waits is not made. One that a sync has taken up can be taken back until the log has moved.

        tailrace offsets undo ./lake
    """
    with shown_errors():
        from tailrace.connector.offsets import editor

        if dry_run:
            planned = editor.planned_undo(lake, _who())
            if as_json:
                print_json(_fields(planned))
            else:
                _print(f"edit {planned.undoes} would be taken back: {planned.says}")
            return
        _tell(editor.undo(lake, _who(), version=version), as_json=as_json)


@app.command("import")
def import_(  # noqa: PLR0913, PLR0917  each is an option
    lake: Lake,
    content: Content,
    dsn: Annotated[str, typer.Option("--dsn", help="The database that the connector reads.")],
    connector: Annotated[str | None, typer.Option(help="The connector's name, where the file has several.")] = None,
    server: Annotated[str | None, typer.Option(help="Its topic.prefix, where the file has several.")] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    *,
    given: Given,
) -> None:
    """Take over from a Debezium connector: {adopted}, from exactly where it stopped.

    Stop the connector first. FILE is the answer of `GET /connectors/NAME/offsets`, records of the offsets topic, or the
    file of a FileOffsetBackingStore. The next `tailrace sync` with the connector's names continues after its
    last commit; tables that the lake does not have come by windows.

        tailrace offsets import ./lake offsets.dat --dsn {dsn} {adopting}
        tailrace sync {dsn} ./lake {continuing}
    """
    with shown_errors():
        from tailrace.connector.offsets import takeover
        from tailrace.offsets.connect import choose, read_offsets
        from tailrace.source.kinds import source_of

        stored = choose(read_offsets(_bytes(content)), connector, server)
        configuration = given.configuration(dsn, lake)
        source = source_of(
            configuration.dsn, **takeover.source_arguments(lake, configuration.kind, configuration.source_options)
        )
        planned = takeover.plan(lake, stored, source)
        if not as_json:
            _show_takeover(planned)
        edit = None if dry_run else takeover.take_over(lake, stored, source, _who())
        if as_json:
            print_json(_takeover_fields(planned, edit))
        elif edit is not None:
            _tell(edit, as_json=False)


@app.command()
def check(
    kind: Kind,
    content: Content,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Print them as the newest version writes them.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check offsets of a Debezium connector of any kind, and name every field that breaks a rule.

    Exit code 1 when one does.

        tailrace offsets check oracle offsets.json --upgrade
    """
    with shown_errors():
        from tailrace.offsets.connect import read_offsets
        from tailrace.offsets.kinds import upgrade as upgraded
        from tailrace.offsets.wire import Entry, emit_entries, validate_body

        entries = [Entry(each.partition, each.offset) for each in read_offsets(_bytes(content))]
        faults = validate_body(kind, emit_entries(entries))
        if upgrade and not faults:
            entries = [Entry(each.partition, upgraded(kind, each.offset or {})) for each in entries]
        if as_json:
            print_json({"valid": not faults, "faults": list(map(str, faults)), **emit_entries(entries)})
        elif upgrade and not faults:
            print_json(emit_entries(entries))
        else:
            typer.echo("\n".join(map(str, faults)) or f"{len(entries)} valid")
        if faults:
            raise typer.Exit(1)


@app.command()
def edit(
    kind: Kind,
    content: Content,
    put: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Add or change a field.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Remove a field.")] = None,
    partition: Annotated[str | None, typer.Option(metavar="JSON", help="Whose, where there are several.")] = None,
) -> None:
    """Change fields of offsets of any kind, and print the whole. Whoever keeps them is told by you.

    A value is JSON, or else a text. Exit code 2 when what comes of it breaks a rule.

        tailrace offsets edit cassandra offsets.json --set cycling.riders=CommitLog-7-1700000000000.log:5
        tailrace offsets edit cassandra offsets.json --remove cycling.riders
    """
    with shown_errors():
        from tailrace.offsets.connect import read_offsets
        from tailrace.offsets.editing import FieldEdit, edited
        from tailrace.offsets.wire import Entry, emit_entries

        body = emit_entries(Entry(each.partition, each.offset) for each in read_offsets(_bytes(content)))
        whose = None if partition is None else _json(partition.encode())
        entries = edited(kind, body, FieldEdit(dict(map(_assignment, put or [])), remove or [], whose))
        typer.echo(json.dumps(emit_entries(entries), indent=2))


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise DefiniteError(f"{text} is not NAME=VALUE", "for example --set txId=571")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


@app.command()
def layout(kind: Kind) -> None:
    """Print the JSON schema of a kind's offsets.

    tailrace offsets layout mysql
    """
    with shown_errors():
        from tailrace.offsets.kinds import describe

        typer.echo(json.dumps(describe(kind), indent=2))


def _bytes(content: str) -> bytes:
    if content == "-":
        return sys.stdin.buffer.read()
    if content.lstrip().startswith(("{", "[")):
        return content.encode()
    try:
        return Path(content).read_bytes()
    except OSError as error:
        raise DefiniteError(
            f"cannot read {content}: {error.strerror}", "name a file, or write the JSON itself"
        ) from None


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise DefiniteError("this is not JSON", "tailrace offsets get prints what it has to look like") from None


def _source(dsn: str | None) -> Source | None:
    from tailrace.source.kinds import source_of

    return None if dsn is None else source_of(dsn)


def _who() -> str:
    return getpass.getuser()


def _note(text: str) -> None:
    PlainConsole(stderr=True, highlight=False, markup=False, soft_wrap=True).print(f"note: {text}", style="yellow")


def _print(text: str) -> None:
    PlainConsole(highlight=False, markup=False, soft_wrap=True).print(text)


def _show(assessment: Assessment, *, is_compared: bool, as_json: bool) -> None:
    if as_json:
        print_json(assessment.to_json())
        return
    if assessment.faults:
        return
    for difference in assessment.differences:
        _print(str(difference))
    for name, position in assessment.positions.items():
        _print(_POSITIONS[name].format(position))
    if assessment.tables:
        _print(f"copied again: {', '.join(assessment.tables)}")
    _print(assessment.says)
    if not is_compared:
        _note("not compared with what the source can still send; --dsn does that")


def _show_takeover(planned: Takeover) -> None:
    _print(f"{planned.server}: the stream begins at {planned.begins}")
    if planned.is_new:
        _print("there is no lake yet: every table is copied by windows beside the stream")
    elif planned.copies:
        _print(f"copied again: {', '.join(planned.copies)}")
    else:
        _print("the lake has all rows: none is copied again")
    for note in planned.notes:
        _note(note)


def _takeover_fields(planned: Takeover, edit: OffsetEdit | None) -> dict[str, Any]:
    return {
        "server": planned.server,
        "begins": str(planned.begins),
        "is_new": planned.is_new,
        "copied_again": list(planned.copies),
        "notes": list(planned.notes),
        "edit": None if edit is None else _fields(edit),
    }


def _tell(edit: OffsetEdit, *, as_json: bool) -> None:
    if as_json:
        print_json(_fields(edit))
        return
    waits = "waits for the next tailrace sync" if edit.state == "waiting" else "is done"
    _print(f"edit {edit.version} ({edit.kind}) {waits}: {edit.says}")


def _fields(edit: OffsetEdit) -> dict[str, Any]:
    return {
        "version": edit.version,
        "kind": edit.kind,
        "state": edit.state,
        "who": edit.who,
        "when": _time(edit.time_us),
        "before": edit.before,
        "after": edit.after,
        "undoes": edit.undoes,
        "consequence": edit.says,
    }


def _table(edits: list[OffsetEdit]) -> Table:
    shown = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("edit", "kind", "state", "who", "when", "what follows"):
        shown.add_column(name, overflow="fold")
    for edit in edits:
        cells = [str(edit.version), edit.kind, edit.state, edit.who, _time(edit.time_us), edit.says]
        shown.add_row(*map(Text, cells))
    return shown


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
