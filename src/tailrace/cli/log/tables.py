"""What a log holds, as tables on a terminal. Anything that comes from the log is text, never markup.

On a terminal a payload is folded into its column; elsewhere each record is one line, for tools that read lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.table import Column, Table
from rich.text import Text

from tailrace.cli.sizes import size_text, time_text
from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.log.survey import LogHolder, SegmentSummary, Totals, kind_name
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.position import SourcePosition
from tailrace.source.kinds import codec_of

ACTIVE_SHOWN = 10
_STYLE: dict[str, Any] = {"box": None, "pad_edge": False, "header_style": "bold", "padding": (0, 2, 0, 0)}

Record = Mapping[str, object]


Formatter = Callable[[SourcePosition], str]


def formatter(identity: Mapping[str, str]) -> Formatter:
    """How positions of this source are written; plain ordinals where its kind is not known or cannot be loaded."""
    try:
        return codec_of(identity["source"]).format
    except (KeyError, DefiniteError, ImportError, AttributeError):
        return lambda position: str(position.ordinal)


def segment_table(segments: Iterable[SegmentSummary]) -> Table:
    columns = _columns("segment", "-records", "-last seq", "-size")
    table = Table(*columns, Column("created", overflow="fold"), **_STYLE)
    for segment in segments:
        table.add_row(
            segment.path.name,
            f"{segment.position_stop - segment.position:,}",
            f"{segment.upto:,}",
            size_text(segment.bytes + segment.index_bytes),
            time_text(segment.created_us, "minutes"),
        )
    return table


def holder_table(holders: Iterable[LogHolder]) -> Table:
    table = Table(Column("consumer", overflow="fold"), *_columns("-acknowledged"), "behind the head", **_STYLE)
    for holder in holders:
        name = f"pin {holder.name}" if holder.is_pin else holder.name
        table.add_row(Text(name), f"{holder.seq:,}", Text(lag_text(holder)))
    return table


def lag_text(holder: LogHolder) -> str:
    """How far behind the head a consumer or a pin is."""
    if holder.transactions < 0:
        ahead = counted(-holder.transactions, "transaction")
        return f"{ahead} ahead of the head: not of this log"
    if holder.transactions == 0:
        return "up to date"
    size = "size unknown, the index is damaged" if holder.bytes is None else size_text(holder.bytes)
    gone = f", {holder.gone:,} of them deleted" if holder.gone else ""
    return f"{counted(holder.transactions, 'transaction')}, {size}{gone}"


def record_table(
    numbered: Sequence[tuple[int, Record]], names: Mapping[int, str], written: Formatter, payload_bytes_max: int
) -> Table:
    """Records by position; sub-transactions have a column only where there are any."""
    has_subs = any(record["sub_xid"] for _, record in numbered)
    columns = _columns("-position", "source position", "-xid", *(["-sub"] if has_subs else []), "kind", "table")
    table = Table(*columns, Column("payload", overflow="fold"), **_STYLE)
    for position, record in numbered:
        kind, relation = _int(record["kind"]), _int(record["relation"])
        cells = [f"{position:,}", written(SourcePosition(_int(record["ordinal"]))), str(record["xid"])]
        cells += [str(record["sub_xid"])] if has_subs else []
        name = names.get(relation, str(relation)) if relation else ""
        shown = payload_text(kind, record["payload"], written, payload_bytes_max)
        table.add_row(*cells, kind_name(kind), Text(name), shown)
    return table


def payload_text(kind: int, payload: object, written: Formatter, bytes_max: int) -> Text:
    """A payload in words: the log's own are read, the source's are shown as text where they are text."""
    if not isinstance(payload, bytes):
        return Text()
    if kind == Kind.COMMIT:
        commit = Commit.from_bytes(payload)
        start, end = written(commit.position), written(replace(commit.position, ordinal=commit.end_ordinal))
        return Text(f"commit {start} end {end} at {time_text(commit.position.time_us)}")
    letters = payload[:bytes_max].decode("utf-8", "backslashreplace")
    shown = Text("".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in letters))
    return shown if len(payload) <= bytes_max else shown.append(f"… {size_text(len(payload))}", style="dim")


def summary_table(
    reader: LogReader,
    segments: Sequence[SegmentSummary],
    totals: Totals,
    active: Mapping[int, int],
    written: Formatter,
) -> Table:
    """The log in a few lines: a name and a value each."""
    head = reader.head
    segment_bytes, index_bytes = sum(s.bytes for s in segments), sum(s.index_bytes for s in segments)
    rows = [*sorted(reader.identity.items())]
    rows += [("head", f"transaction {head.seq:,}, position {head.position:,}")]
    rows += [("source position", written(SourcePosition(head.ordinal)))]
    rows += [("written", time_text(head.written_us))] if head.written_us else []
    rows += [("size", f"{size_text(segment_bytes + index_bytes)}, of which index {size_text(index_bytes)}")]
    rows += [("segments", f"{len(segments):,}")]
    rows += [("finished", f"{counted(totals.transactions, 'transaction')}{_seq_range(reader)}")]
    if totals.transactions:
        rows += [("committed", f"{time_text(totals.first_us)} to {time_text(totals.last_us)}")]
    rows += [("changes", f"{totals.changes:,} in {counted(len(totals.relations), 'table')}")]
    rows += [("active", f"xid {xid} since position {first:,}") for xid, first in list(active.items())[:ACTIVE_SHOWN]]
    if len(active) > ACTIVE_SHOWN:
        rows += [("", f"and {len(active) - ACTIVE_SHOWN:,} more")]
    table = Table(show_header=False, **_STYLE)
    for name, value in rows:
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def _seq_range(reader: LogReader) -> str:
    oldest, newest = reader.oldest_seq, reader.head.seq
    return f", {oldest:,} to {newest:,}" if newest > oldest else ""


def counted(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _columns(*names: str) -> list[Column]:
    """Columns of these names that are never folded; one that starts with `-` holds numbers."""
    return [
        Column(name.removeprefix("-"), justify="right" if name.startswith("-") else "left", no_wrap=True)
        for name in names
    ]


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value
