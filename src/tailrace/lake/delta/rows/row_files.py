"""Files of rows: Parquet, written and read with Arrow under the names that the files have."""

from __future__ import annotations

import datetime
import itertools
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tailrace.lake.delta.json_text import text_of
from tailrace.lake.delta.metadata import Field
from tailrace.lake.delta.rows._damage import noticed
from tailrace.model.rows.lake_types import arrow_type
from tailrace.model.rows.nested import is_nested
from tailrace.storage.door import Storage

SAMPLE_ROWS = 1000
REPEATED_MIN = 10
"""So often must values of a column be there on average for it to get a dictionary."""
STATISTICS_COLUMNS_MAX = 32
"""How many columns have statistics for skipping files: Delta's own choice."""
_TEXT_LETTERS_MAX = 32
_LAST_LETTER = "\U0010ffff"
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAYS = _EPOCH.toordinal()

Action = Mapping[str, Any]


@dataclass(frozen=True)
class RowSizes:
    """How much of a table is in memory at a time, and which of its files are small. Bytes are in memory."""

    group_rows_max: int = 256 << 10
    group_bytes_max: int = 64 << 20
    """Files are read a group of rows at a time."""
    collected_bytes: int = 16 << 20
    """Batches are collected to this size before they are written as a group of rows."""
    filled_bytes_max: int = 64 << 20
    """Of old values that are filled into states at a time. Reading, filling in and writing them takes about seven times
    as much memory."""
    saved_rows_min: int = 100_000
    """The key index of a smaller file is not saved."""

    def group_rows(self, rows: pa.Table) -> int:
        """How many of these rows a group may have."""
        fitting: int = self.group_bytes_max * rows.num_rows // max(rows.nbytes, 1)
        return max(1, min(self.group_rows_max, fitting))


SIZES = RowSizes()


def write_rows(
    table: Storage, batches: Iterable[pa.RecordBatch], fields: Sequence[Field], sizes: RowSizes = SIZES
) -> Action | None:
    """One new file, its content durable when this returns, as its `add` action; None without rows.

    Batches have the fields' own names; columns that they lack are null.
    """
    coming = _collected(batches, sizes.collected_bytes)
    first = next(coming, None)
    if first is None:
        return None
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    with table.create(name) as sink:
        written = _write(sink, itertools.chain([first], coming), fields, sizes)
        size = sink.tell()
    return {
        "path": name,
        "partitionValues": {},
        "size": size,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": text_of(statistics(written, fields)),
    }


def _write(sink: pa.NativeFile, parts: Iterable[pa.Table], fields: Sequence[Field], sizes: RowSizes) -> Any:
    """Returns what Parquet says of the whole file."""
    schema = pa.schema([field.arrow for field in fields])
    collected: list[Any] = []
    writer = None
    try:
        for rows in parts:
            writer = writer or _writer(sink, schema, collected, _repeating(rows, fields))
            writer.write_table(physical(rows, fields, schema), row_group_size=sizes.group_rows(rows))
    except BaseException:
        if writer is not None:
            with suppress(Exception):
                writer.close()
        raise
    assert writer is not None
    writer.close()
    return collected[0]


def _collected(batches: Iterable[pa.RecordBatch], collected_bytes: int) -> Iterator[pa.Table]:
    """The rows of neighbouring batches together. Empty ones are left out."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if held and batch.schema != held[0].schema:
            yield pa.Table.from_batches(held)
            held, size = [], 0
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= collected_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _writer(sink: pa.NativeFile, schema: pa.Schema, collected: list[Any], repeating: Sequence[str]) -> Any:
    return pq.ParquetWriter(
        sink,
        schema,
        compression="snappy",
        use_dictionary=list(repeating),
        store_decimal_as_integer=True,
        store_schema=False,
        write_page_checksum=True,
        metadata_collector=collected,
    )


def _repeating(batch: pa.RecordBatch | pa.Table, fields: Sequence[Field]) -> list[str]:
    """The columns that get a dictionary, judged by their first values: one that hardly repeats itself costs a third of
    the writing and is given up later on anyway."""
    first = batch.slice(0, SAMPLE_ROWS)
    found = []
    for field in fields:
        type_ = arrow_type(field.type)
        if pa.types.is_list(type_):
            found.append(f"{field.physical}.list.element")
        elif not is_nested(type_) and field.name in first.schema.names:
            values = first.column(field.name)
            if pc.count_distinct(values, mode="all").as_py() <= max(1, first.num_rows // REPEATED_MIN):
                found.append(field.physical)
    return found


def physical(batch: pa.RecordBatch | pa.Table, fields: Sequence[Field], schema: pa.Schema) -> pa.Table:
    """Rows as files have them."""
    names = batch.schema.names
    arrays = [
        batch.column(names.index(field.name)) if field.name in names else pa.nulls(batch.num_rows, arrow.type)
        for field, arrow in zip(fields, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def statistics(written: Any, fields: Sequence[Field]) -> dict[str, Any]:
    """What lets a reader skip a file, as Delta writes it."""
    groups = [written.row_group(number) for number in range(written.num_row_groups)]
    found: dict[str, Any] = {"numRecords": written.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for index, field in _plain_columns(fields):
        columns = [group.column(index).statistics for group in groups]
        if any(each is None or not each.has_null_count for each in columns):
            continue
        found["nullCount"][field.physical] = sum(each.null_count for each in columns)
        filled = [each for each in columns if each.num_values]
        if not filled or not all(each.has_min_max for each in filled):
            continue
        low = bound(min(each.min_raw for each in filled), field.type, is_high=False)
        high = bound(max(each.max_raw for each in filled), field.type, is_high=True)
        if low is not None and high is not None:
            found["minValues"][field.physical], found["maxValues"][field.physical] = low, high
    return {**found, "tightBounds": True}


def _plain_columns(fields: Sequence[Field]) -> Iterator[tuple[int, Field]]:
    """The columns that have statistics, and their numbers in a file, where a map is two columns."""
    index = 0
    for field in fields[:STATISTICS_COLUMNS_MAX]:
        type_ = arrow_type(field.type)
        if not is_nested(type_):
            yield index, field
        index += 2 if pa.types.is_map(type_) else 1


def bound(raw: Any, type_: str, *, is_high: bool) -> Any:
    """A bound of a column as statistics have it; None for a type, or a value, that they cannot say exactly: a reader
    then looks into the file."""
    match type_:
        case "smallint" | "int" | "bigint":
            return raw
        case "string":
            return _short(raw.decode() if isinstance(raw, bytes) else raw, is_high=is_high)
        case "date":
            days = raw + _EPOCH_DAYS
            return datetime.date.fromordinal(days).isoformat() if 1 <= days <= datetime.date.max.toordinal() else None
        case "timestamp" | "timestamp_ntz":
            return _time_text(-(-raw // 1000) if is_high else raw // 1000, "Z" if type_ == "timestamp" else "")
        case _:
            return None


def _time_text(milliseconds: int, zone: str) -> str | None:
    try:
        moment = _EPOCH + datetime.timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds") + zone


def _short(text: str, *, is_high: bool) -> str:
    """The first letters of a text. As a high bound, with a last one that no letter in its place exceeds."""
    if len(text) <= _TEXT_LETTERS_MAX:
        return text
    letters = _TEXT_LETTERS_MAX
    if not is_high:
        return text[:letters]
    while text[letters : letters + 1] == _LAST_LETTER:
        letters += 1
    return text[:letters] + _LAST_LETTER


def read_columns(table: Storage, name: str, fields: Sequence[Field]) -> list[pa.Array]:
    """Whole columns of a file; a column that it does not have is null."""
    with _opened(table, name) as file:
        return _columns(file.read(columns=_present(file, fields)), fields)


def read_at(
    table: Storage, name: str, fields: Sequence[Field], positions: np.ndarray
) -> Iterator[tuple[slice, pa.Table]]:
    """Rows of a file at ascending positions, under the fields' own names: of each group of rows, which of the positions
    lie in it, and what lies there."""
    with _opened(table, name) as file:
        begin = 0
        for number in range(file.num_row_groups):
            end = begin + file.metadata.row_group(number).num_rows
            low, high = np.searchsorted(positions, [begin, end]).tolist()
            if high > low:
                group = file.read_row_group(number, columns=_present(file, fields))
                rows = pa.table(_columns(group, fields), [field.name for field in fields])
                yield slice(low, high), rows.take(pa.array(positions[low:high] - begin))
            begin = end


def read_batches(table: Storage, name: str, fields: Sequence[Field], without: np.ndarray) -> Iterator[pa.RecordBatch]:
    """A file's rows but for those at some positions, under the fields' own names."""
    with _opened(table, name) as file:
        begin = 0
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, columns=_present(file, fields))
            kept = np.ones(group.num_rows, bool)
            kept[without[(without >= begin) & (without < begin + group.num_rows)] - begin] = False
            rows = pa.table(_columns(group, fields), [field.name for field in fields])
            yield from rows.filter(pa.array(kept)).to_batches()
            begin += group.num_rows


@contextmanager
def _opened(table: Storage, name: str) -> Iterator[Any]:
    with noticed(name):
        # Spark may write times in a type of 96 bits, which Arrow would read as nanoseconds: too few for year 1 or 9999.
        options = {"coerce_int96_timestamp_unit": "us", "page_checksum_verification": True}
        with table.open(name) as source, pq.ParquetFile(source, **options) as file:
            yield file


def _present(file: Any, fields: Sequence[Field]) -> list[str]:
    return [field.physical for field in fields if field.physical in file.schema_arrow.names]


def _columns(table: pa.Table, fields: Sequence[Field]) -> list[pa.Array]:
    found = []
    for field in fields:
        type_ = arrow_type(field.type)
        if field.physical in table.column_names:
            column = table.column(field.physical)
            found.append(pc.cast(column, type_).combine_chunks())
        else:
            found.append(pa.nulls(table.num_rows, type_))
    return found
