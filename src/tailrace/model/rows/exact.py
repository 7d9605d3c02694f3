"""Values that their column's lake type cannot hold, kept as the source writes them.

    placed       seen          seats      tailrace:exact
    2024-05-01   null          {1,2}      {seen: infinity}
    2024-05-02   2024-05-02    null       {seats: {{1,2},{3,4}}}

Such a value is null in its own column, and its text is in one more column, a map from the names of columns to texts.
Rows, changes, events and states have that column (`EXACT`) only where one of them has such a value; a change may have
it for its old row, too (`EXACT_BEFORE`). A map is null where it would be empty, and its names are in order: two rows
that are equal have equal maps.

A lake table gets the column when its first such value is published. It is called `_exact` there, unless a column of the
source is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.rows.lake_types import arrow_type
from tailrace.model.table import Column

EXACT = "tailrace:exact"
EXACT_BEFORE = "tailrace:exact_before"
LAKE_TYPE = "map<string,string>"
EXACT_TYPE = arrow_type(LAKE_TYPE)
_ORIGIN = "tailrace:exact"
"""In place of a source's type; no type is written like that."""
_NAME = "_exact"


def lake_column(names: Iterable[str]) -> Column:
    """The column of a lake table for such values, beside the source's columns of these names."""
    taken, name = {each.lower() for each in names}, _NAME
    while name in taken:
        name += "_"
    return Column(name, LAKE_TYPE, _ORIGIN)


def is_ours(column: Column) -> bool:
    """Whether a lake column is the one for such values."""
    return column.source_type == _ORIGIN


def ours(columns: Iterable[Column]) -> Column | None:
    """The one for such values among a lake table's columns."""
    return next((column for column in columns if is_ours(column)), None)


def exact_of(rows: Any, name: str = EXACT) -> Any | None:
    """The maps of a table's or a batch's rows, in one piece; None where no row has such a value."""
    index = rows.schema.get_field_index(name)
    if index < 0:
        return None
    found = rows.column(index)
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return found if found.null_count < len(found) else None


def with_exact(rows: Any, maps: Any | None, name: str = EXACT) -> Any:
    """The rows with these maps, or without any."""
    index = rows.schema.get_field_index(name)
    if maps is None:
        return rows if index < 0 else rows.drop_columns([name])
    return rows.append_column(name, maps) if index < 0 else rows.set_column(index, name, maps)


def without_exact(rows: Any) -> Any:
    """The rows as they are without such values."""
    return with_exact(with_exact(rows, None), None, EXACT_BEFORE)


def padded(rows: Any, name: str = EXACT) -> Any:
    """The rows with the column, also where it has nothing."""
    return rows if name in rows.schema.names else rows.append_column(name, pa.nulls(rows.num_rows, EXACT_TYPE))


def together(parts: Sequence[Any], schema: Any) -> Any:
    """Tables or batches that have the schema's columns, and some of them `EXACT`, as one table."""
    tables = [part if isinstance(part, pa.Table) else pa.Table.from_batches([part]) for part in parts]
    if not tables:
        return schema.empty_table()
    return pa.concat_tables(tables, promote_options="default")


def texts_of(maps: Any) -> dict[str, Any]:
    """The texts of each column that has any: one array a column, null in all other rows."""
    offsets = maps.offsets.to_numpy()
    count = len(maps)
    lengths = np.where(maps.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), 0)
    rows = np.repeat(np.arange(count), lengths)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(offsets[:-1], lengths)
    keys = maps.keys.take(pa.array(places))
    found = {}
    for name in sorted(pc.unique(keys).to_pylist()):
        chosen = pc.equal(keys, name).to_numpy(zero_copy_only=False)
        where = np.full(count, -1, np.int64)
        where[rows[chosen]] = places[chosen]
        found[name] = maps.items.take(pa.array(where, mask=where < 0))
    return found


def maps_of(texts: Mapping[str, Any], count: int) -> Any | None:
    """One map a row, from the texts of each column; None where no row has any."""
    names = sorted(name for name, column in texts.items() if column.null_count < count)
    if not names:
        return None
    columns = [texts[name] for name in names]
    there = np.stack([column.is_valid().to_numpy(zero_copy_only=False) for column in columns], axis=1)
    rows, places = np.nonzero(there)
    counts = there.sum(axis=1)
    offsets = pa.array(np.r_[0, np.cumsum(counts)].astype(np.int32))
    keys = pa.array(names, pa.string()).take(pa.array(places))
    items = pa.concat_arrays(columns).take(pa.array(places * count + rows))
    return pa.MapArray.from_arrays(offsets, keys, items, EXACT_TYPE, mask=pa.array(counts == 0))


def renamed(maps: Any, names: Mapping[str, str]) -> Any | None:
    """With other names for the columns; those that `names` lacks are left out."""
    texts = texts_of(maps)
    return maps_of({names[name]: column for name, column in texts.items() if name in names}, len(maps))


def filled(maps: Any | None, wants: Mapping[str, Any], old: Any | None, count: int) -> Any | None:
    """The maps of rows that take some columns from old ones: `wants` says for each such column, of each row, which old
    row it takes it from; -1 where it has its own."""
    texts = texts_of(maps) if maps is not None else {}
    before = texts_of(old) if old is not None else {}
    none = pa.nulls(count, pa.string())
    for name, places in wants.items():
        if name not in texts and name not in before:
            continue
        taken = pa.array(places, mask=places < 0)
        theirs = before[name].take(taken) if name in before else none
        texts[name] = pc.if_else(pa.array(places < 0), texts.get(name, none), theirs)
    return maps_of(texts, count)
