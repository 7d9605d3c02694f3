"""The vectorised decoder against one that reads a row at a time, and against damaged bytes."""

from __future__ import annotations

import contextlib
import datetime
import struct
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import DefiniteError, TextKeyError
from tailrace.model.change import BEFORE, COMMIT_TS, OP, ORDINAL, POS, SEQ, UNCHANGED, XID, change_schema
from tailrace.model.kind import Kind
from tailrace.model.rows.exact import EXACT, EXACT_BEFORE
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.postgres.values.row_changes import decode

RELATION = 16_400
TEXTS = {
    "bigint": st.integers(-(2**63), 2**63 - 1).map(str),
    "boolean": st.sampled_from("tf"),
    "string": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    "decimal(9,3)": st.decimals(-999_999, 999_999, places=3).map(lambda number: f"{number:f}"),
    "binary": st.binary(max_size=10).map(lambda blob: rf"\x{blob.hex()}"),
    "timestamp": st.datetimes().map(lambda moment: f"{moment.isoformat(sep=' ')}+00"),
}
LEFT_OUT = object()
Tuple = list[Any]


@dataclass(frozen=True)
class Change:
    """One message, as the test means it."""

    kind: Kind
    old: Tuple | None = None
    old_is_full: bool = False
    new: Tuple | None = None


def encode(change: Change) -> bytes:
    if change.kind is Kind.TRUNCATE:
        return b"T" + struct.pack(">IBII", 2, 1, RELATION, 7)
    message = {Kind.INSERT: b"I", Kind.UPDATE: b"U", Kind.DELETE: b"D"}[change.kind] + struct.pack(">I", RELATION)
    if change.old is not None:
        message += (b"O" if change.old_is_full else b"K") + encode_tuple(change.old)
    if change.new is not None:
        message += b"N" + encode_tuple(change.new)
    return message


def encode_tuple(values: Tuple) -> bytes:
    message = struct.pack(">H", len(values))
    for value in values:
        if value is None or value is LEFT_OUT:
            message += b"n" if value is None else b"u"
        else:
            message += b"t" + struct.pack(">I", len(value.encode())) + value.encode()
    return message


def table(*lake_types: str) -> TableSchema:
    columns = tuple(Column(f"c{index}", lake, lake) for index, lake in enumerate(lake_types))
    return TableSchema(TableId("public", "t"), RELATION, columns, ("c0",))


def records(payloads: list[bytes], kinds: list[Kind]) -> Any:
    count = len(payloads)
    return pa.RecordBatch.from_pydict(
        {
            "seq": pa.array(range(100, 100 + count), pa.int64()),
            "position": pa.array(range(count), pa.int64()),
            "ordinal": pa.array(range(1000, 1000 + count), pa.uint64()),
            "commit_ordinal": pa.array(range(5000, 5000 + count), pa.uint64()),
            "commit_time_us": pa.array([1_700_000_000_000_000] * count, pa.int64()),
            "xid": pa.array(range(700, 700 + count), pa.uint64()),
            "kind": pa.array(kinds, pa.uint8()),
            "relation": pa.array([RELATION] * count, pa.uint32()),
            "payload": pa.array(payloads, pa.binary()),
        }
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[TableSchema, list[Change]]:
    lakes = draw(st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=5))
    full = draw(st.booleans())

    def row(*, toast: bool) -> Tuple:
        holes = [st.none(), st.just(LEFT_OUT)] if toast else [st.none()]
        return [draw(st.one_of(*holes, TEXTS[lake])) for lake in lakes]

    def key() -> Tuple:
        return [draw(TEXTS[lakes[0]])] + [None] * (len(lakes) - 1)

    changes = []
    for kind in draw(st.lists(st.sampled_from([Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.TRUNCATE]), max_size=12)):
        new = row(toast=kind is Kind.UPDATE) if kind in (Kind.INSERT, Kind.UPDATE) else None
        has_old = kind is Kind.DELETE or (kind is Kind.UPDATE and (full or draw(st.booleans())))
        old = (row(toast=False) if full else key()) if has_old else None
        changes.append(Change(kind, old, full, new))
    return table(*lakes), changes


def value(text: str | None, lake: str) -> Any:
    if text is None or text is LEFT_OUT:
        return None
    parsers = {
        "bigint": int,
        "boolean": lambda given: given == "t",
        "string": str,
        "decimal(9,3)": Decimal,
        "binary": lambda given: bytes.fromhex(given[2:]),
        "timestamp": datetime.datetime.fromisoformat,
    }
    return parsers[lake](text)


def expected_row(change: Change, schema: TableSchema) -> dict[str, Any]:
    """What one change means, worked out without looking at the bytes."""
    new = list(change.new) if change.new is not None else [None] * len(schema.columns)
    if change.old is not None:
        pairs = zip(new, change.old, strict=True)
        new = [old if text is LEFT_OUT and old is not None else text for text, old in pairs]
    missing = [name for name, text in zip(schema.names, new, strict=True) if text is LEFT_OUT]
    typed = {column.name: value(text, column.type) for column, text in zip(schema.columns, new, strict=True)}
    before = None
    if change.old is not None:
        before = {
            column.name: value(text, column.type) for column, text in zip(schema.columns, change.old, strict=True)
        }
    return {OP: {32: "c", 33: "u", 34: "d", 35: "t"}[change.kind], BEFORE: before} | {
        UNCHANGED: missing or None,
        **typed,
    }


@given(histories(), st.integers(0, 4))
def test_a_batch_decodes_as_its_rows_do_one_by_one(history: tuple[TableSchema, list[Change]], start: int) -> None:
    schema, changes = history
    batch = records([encode(change) for change in changes], [change.kind for change in changes]).slice(start)
    decoded = decode(batch, schema)
    decoded.validate(full=True)
    assert decoded.schema == change_schema(schema)
    expected = [expected_row(change, schema) for change in changes[start:]]
    assert decoded.drop_columns([SEQ, POS, ORDINAL, XID, COMMIT_TS]).to_pylist() == expected


@given(histories(), st.integers(1, 4), st.integers(0, 12))
def test_however_many_rows_are_decoded_at_a_time_the_outcome_is_the_same(
    history: tuple[TableSchema, list[Change]], rows: int, damaged_row: int
) -> None:
    schema, changes = history
    payloads = [encode(change) + b"n" * (row == damaged_row) for row, change in enumerate(changes)]
    batch = records(payloads, [change.kind for change in changes])
    assert outcome(batch, schema, rows) == outcome(batch, schema)


def outcome(batch: Any, schema: TableSchema, rows: int | None = None) -> Any:
    """The changes, or the error; decoded so many rows at a time."""
    try:
        decoded = decode(batch, schema) if rows is None else decode(batch, schema, part_bytes=1, part_rows_min=rows)
        decoded.validate(full=True)
        return decoded.to_pylist()
    except DefiniteError as error:
        return error.message


def test_each_row_says_where_in_the_log_and_in_the_source_it_stands() -> None:
    change = Change(Kind.INSERT, new=["7"])
    row = decode(records([encode(change)] * 2, [Kind.INSERT] * 2), table("int")).to_pylist()[1]
    assert (row[SEQ], row[POS], row[ORDINAL], row[XID]) == (101, 1, 5001, 701)
    assert row[COMMIT_TS] == datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC)


def test_an_unchanged_column_is_filled_from_the_old_row_but_not_from_an_old_key() -> None:
    schema = table("int", "string")
    full = Change(Kind.UPDATE, old=["1", "large"], old_is_full=True, new=["2", LEFT_OUT])
    key_only = Change(Kind.UPDATE, old=["1", None], new=["2", LEFT_OUT])
    rows = decode(records([encode(full), encode(key_only)], [Kind.UPDATE] * 2), schema).to_pylist()
    assert [(row["c0"], row["c1"], row[UNCHANGED]) for row in rows] == [(2, "large", None), (2, None, ["c1"])]


def test_a_table_without_columns_still_has_its_changes() -> None:
    changes = [Change(Kind.INSERT, new=[]), Change(Kind.TRUNCATE)]
    decoded = decode(records([encode(change) for change in changes], [Kind.INSERT, Kind.TRUNCATE]), table())
    assert decoded.column(OP).to_pylist() == ["c", "t"]


def damaged(payload: bytes, data: st.DataObject) -> bytes:
    """With other bytes at one place: as many, fewer, more, or those of a length that reaches anywhere."""
    at = data.draw(st.integers(0, len(payload)))
    given = data.draw(
        st.one_of(
            st.binary(min_size=1, max_size=4),
            st.sampled_from([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"t\x00\x00\x00\x00", b"\x00\x00", b"u", b"n"]),
        )
    )
    return payload[:at] + given + payload[at + data.draw(st.integers(0, 6)) :]


def meaning(decoded: Any) -> list[dict[str, Any]]:
    decoded.validate(full=True)
    return decoded.drop_columns([SEQ, POS, ORDINAL, XID, COMMIT_TS]).to_pylist()  # type: ignore[no-any-return]


@given(histories().filter(lambda history: len(history[1]) > 0), st.data())
def test_damaged_bytes_are_refused_or_are_a_row_of_their_own_and_the_others_keep_their_values(
    history: tuple[TableSchema, list[Change]], data: st.DataObject
) -> None:
    schema, changes = history
    payloads, kinds = [encode(change) for change in changes], [change.kind for change in changes]
    victim = data.draw(st.integers(0, len(changes) - 1))
    payloads[victim] = damaged(payloads[victim], data)
    begun = time.process_time()
    with contextlib.suppress(DefiniteError):
        found = meaning(decode(records(payloads, kinds), schema))
        (alone,) = meaning(decode(records(payloads[victim : victim + 1], kinds[victim : victim + 1]), schema))
        others = [row for row, _ in enumerate(changes) if row != victim]
        plain = [
            {name: text for name, text in found[row].items() if name not in (EXACT, EXACT_BEFORE)} for row in others
        ]
        assert plain == [expected_row(changes[row], schema) for row in others]
        assert all(found[row].get(name) is None for row in others for name in (EXACT, EXACT_BEFORE))
        assert repr({**dict.fromkeys(found[victim]), **alone}) == repr(found[victim])
    assert time.process_time() - begun < 5


@given(histories().filter(lambda history: len(history[1]) > 0), st.data())
def test_a_message_cut_short_or_with_bytes_left_over_is_refused_with_its_lsn(
    history: tuple[TableSchema, list[Change]], data: st.DataObject
) -> None:
    schema, changes = history
    row = data.draw(st.integers(0, len(changes) - 1))
    payloads = [encode(change) for change in changes]
    if changes[row].kind is Kind.TRUNCATE:
        payloads[row] = payloads[row][:5]
    elif data.draw(st.booleans()):
        payloads[row] += b"n"
    else:
        payloads[row] = payloads[row][: data.draw(st.integers(0, len(payloads[row]) - 1))]
    with pytest.raises(DefiniteError, match=rf"public\.t: the change at 0/{1000 + row:X} "):
        decode(records(payloads, [change.kind for change in changes]), schema)


def test_a_change_of_another_relation_or_another_shape_is_refused() -> None:
    insert = records([encode(Change(Kind.INSERT, new=["1"]))], [Kind.INSERT])
    with pytest.raises(DefiniteError, match="does not have 2 columns"):
        decode(insert, table("int", "int"))
    with pytest.raises(DefiniteError, match="another relation"):
        decode(insert, TableSchema(TableId("public", "t"), 9, table("int").columns, ("c0",)))
    with pytest.raises(DefiniteError, match="another kind"):
        decode(records([encode(Change(Kind.INSERT, new=["1"]))], [Kind.DELETE]), table("int"))


@pytest.mark.parametrize("at_a_time", [1, 1000])
def test_a_value_that_its_column_cannot_hold_is_kept_as_text_for_the_old_row_and_the_new(at_a_time: int) -> None:
    update = Change(Kind.UPDATE, old=["1", "infinity"], old_is_full=True, new=["1", "-infinity"])
    insert = Change(Kind.INSERT, new=["2", "2024-01-01 00:00:00+00"])
    batch = records([encode(update), encode(insert)], [Kind.UPDATE, Kind.INSERT])
    found = decode(batch, table("int", "timestamp"), part_bytes=1, part_rows_min=at_a_time)
    assert found.column("c1").is_valid().to_pylist() == [False, True]
    assert found.column(EXACT).to_pylist() == [[("c1", "-infinity")], None]
    assert found.column(EXACT_BEFORE).to_pylist() == [[("c1", "infinity")], None]


def test_a_key_that_its_column_cannot_hold_says_which_columns_have_to_be_text() -> None:
    insert = records([encode(Change(Kind.INSERT, new=["infinity", "1"]))], [Kind.INSERT])
    schema = table("date", "int")
    with pytest.raises(TextKeyError, match=r"public\.t: column c0 is in the key .* the value 'infinity'") as caught:
        decode(insert, schema)
    assert (caught.value.table, caught.value.relation) == ("public.t", schema.relation)
    assert list(caught.value.columns) == [schema.columns[0].identity]
    as_text = replace(schema, columns=(replace(schema.columns[0], type="string"), schema.columns[1]))
    assert decode(insert, as_text).column("c0").to_pylist() == ["infinity"]


def test_text_that_no_value_of_a_type_has_names_table_and_column() -> None:
    insert = records([encode(Change(Kind.INSERT, new=["1", "soon"]))], [Kind.INSERT])
    with pytest.raises(DefiniteError, match=r"public\.t column c1: the value 'soon'"):
        decode(insert, table("int", "timestamp"))
