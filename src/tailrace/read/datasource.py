"""The log as a Spark data source: `spark.read` and `spark.readStream` with `format("tailrace")`.

    spark.readStream.format("tailrace").option("table", "public.orders").load("./lake")

With a table: its changes, typed. Without: one row a transaction. An offset is a transaction's
sequence number, so a batch always ends on a transaction boundary. Executors read the log's files
themselves; nothing but the plan passes through the driver.

Our columns have short names here, `_op` and the like, because people type them. A table that has such a column itself
is refused, here only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tailrace.changes.decoding import RANGE_BYTES, decode_ranges
from tailrace.changes.shape import TableShape, shape_of, with_dropped, without_key
from tailrace.errors import DefiniteError
from tailrace.lake.formats import format_named
from tailrace.lake.frames import spark_schema
from tailrace.lake.home import LakeHome
from tailrace.log.playback.ranges import ByteRange, no_longer
from tailrace.log.reader import LogReader
from tailrace.model.change import PREFIX, change_schema
from tailrace.model.following import typed_like
from tailrace.model.rows.exact import EXACT, EXACT_BEFORE, EXACT_TYPE, is_ours, padded
from tailrace.model.table import TableId, TableSchema
from tailrace.source.kinds import codec_of

OPTIONS = {
    "path": "the lake, or its log",
    "table": "the table to read, as namespace.name; all transactions when left out",
    "startseq": "read transactions after this sequence number (default: the oldest there is)",
    "endseq": "read up to this one (batch only; default: the newest)",
    "maxtransactionspertrigger": "at most this many transactions a micro-batch",
    "maxbytespertrigger": "about this many bytes of log a micro-batch; at least one transaction",
}

TRANSACTIONS = pa.schema(
    [
        pa.field("seq", pa.int64()),
        pa.field("xid", pa.int64()),
        pa.field("ordinal", pa.int64()),
        pa.field("commit_ts", pa.timestamp("us", tz="UTC")),
        pa.field("changes", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("tables", pa.list_(pa.string())),
    ]
)


def register(spark: SparkSession) -> None:
    """Make `format("tailrace")` known to this session."""
    spark.dataSource.register(TailraceDataSource)


@dataclass
class LogPart(InputPartition):
    """What one task reads."""

    after: int
    upto: int
    byte_range: ByteRange | None
    shape: TableShape | None = None
    """With the shapes that the log had when the part was planned; a stream may have begun before."""


class TailraceDataSource(DataSource):
    """Reads a Tailrace log."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = {name.lower(): value for name, value in options.items()}
        unknown = sorted(set(given) - set(OPTIONS))
        if unknown:
            raise DefiniteError(f"unknown option {unknown[0]!r}", f"options are {', '.join(OPTIONS)}")
        if "path" not in given:
            raise DefiniteError("no path given", '.load("./lake")')
        self._given = given
        self._log = find_log(Path(given["path"]))

    @classmethod
    def name(cls) -> str:
        return "tailrace"

    def schema(self) -> StructType:
        target = self._target()
        return spark_schema(public_schema(target) if target else TRANSACTIONS)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _BatchReader(self._log, self._target(), self._number("startseq"), self._number("endseq"))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        limits = self._number("maxtransactionspertrigger"), self._number("maxbytespertrigger")
        return _StreamReader(self._log, self._target(), self._number("startseq"), limits)

    def _number(self, name: str) -> int | None:
        text = self._given.get(name)
        if text is not None and not text.isdigit():
            raise DefiniteError(f"option {name} is {text!r}, not a number")
        return None if text is None else int(text)

    def _target(self) -> TableSchema | None:
        """The table as changes of it are shown: as the newest one in the log or, before there is one, as the lake's
        copy. A stream is started again to see a newer shape."""
        if "table" not in self._given:
            return None
        given = self._given["table"]
        wanted = given if "." in given else f"public.{given}"
        path, reader = Path(self._given["path"]), LogReader(self._log)
        copied = _copied(path, wanted)
        logged = {str(version.schema.table): version.schema.table for version in reader.schemas()}
        shape = _shape(reader, logged[wanted]) if wanted in logged else None
        if shape is not None:
            return typed_like(with_dropped(shape).target, copied.columns if copied else ())
        if copied is None:
            known = sorted({*logged, *map(str, LakeHome(path).tables.load())})
            hint = f"it has: {', '.join(known) or 'none yet'}"
            raise DefiniteError(f"neither the log nor the lake has a table {given}", hint)
        return copied


def _shape(reader: LogReader, table: TableId, relation: int | None = None) -> TableShape | None:
    decode = codec_of(reader.identity["source"]).decode
    found = shape_of(reader.schemas(), table, (0, reader.head.position), decode, relation)
    return None if found is None else without_key(found)


def _copied(path: Path, wanted: str) -> TableSchema | None:
    """The table as the lake at `path` has it; None where that is no lake or has no copy yet."""
    home = LakeHome(path)
    source = home.source()
    table, record = next((each for each in home.tables.load().items() if str(each[0]) == wanted), (None, None))
    if source is None or table is None or record is None:
        return None
    stored = format_named(source.format).table(home.place_of(table))
    version = stored.version()
    if version is None:
        return None
    columns = [column for column in stored.columns(version.number) if not is_ours(column)]
    return TableSchema(table, record.relation, tuple(columns), ())


class _LogParts:
    """What batch and stream readers share: parts of a range, and reading one."""

    def __init__(self, log: Path, target: TableSchema | None) -> None:
        self._log = log
        self._target = target

    def _parts(self, after: int, upto: int) -> Sequence[LogPart]:
        reader = LogReader(self._log)
        if after >= upto:
            return []
        if after + 1 < reader.oldest_seq:
            raise no_longer(self._log, after + 1)
        if self._target is None:
            return [LogPart(after, upto, None)]
        shape = _shape(reader, self._target.table, self._target.relation)
        if shape is None:
            return []
        shape = replace(shape, target=self._target)
        ranges = reader.ranges(after, upto, RANGE_BYTES, shape.relations)
        return [LogPart(after, upto, each, shape) for each in ranges]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if partition.byte_range is None or partition.shape is None:
            return iter(transactions(LogReader(self._log), partition.after, partition.upto).to_batches())
        shape: TableShape = partition.shape
        changes = decode_ranges(self._log, [partition.byte_range], partition.after, partition.upto, shape)
        names = public_schema(shape.target).names
        return (padded(padded(batch), EXACT_BEFORE).rename_columns(names) for batch in changes)


class _BatchReader(_LogParts, DataSourceReader):
    def __init__(self, log: Path, target: TableSchema | None, start: int | None, end: int | None) -> None:
        super().__init__(log, target)
        self._start, self._end = start, end

    def partitions(self) -> Sequence[LogPart]:
        reader = LogReader(self._log)
        after = reader.oldest_seq - 1 if self._start is None else self._start
        upto = reader.head.seq if self._end is None else min(self._end, reader.head.seq)
        return self._parts(after, upto) or [LogPart(0, 0, None)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return super().read(partition) if partition.upto else iter(())


class _StreamReader(_LogParts, DataSourceStreamReader):
    def __init__(
        self, log: Path, target: TableSchema | None, start: int | None, limits: tuple[int | None, int | None]
    ) -> None:
        super().__init__(log, target)
        self._start = start
        self._transactions_max, self._bytes_max = limits

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"seq": LogReader(self._log).oldest_seq - 1 if self._start is None else self._start}

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        """As far as the limits allow. Spark before 4.2 passes nothing; then there is no limit to keep."""
        reader = LogReader(self._log)
        head = reader.head.seq
        if start is None:
            return {"seq": head}
        end = head
        if self._transactions_max is not None:
            end = min(end, start["seq"] + self._transactions_max)
        if self._bytes_max is not None and end > start["seq"]:
            weights = reader.transactions(start["seq"], end).column("bytes").to_numpy()
            fitting = int(np.searchsorted(np.cumsum(weights), self._bytes_max, side="right"))
            end = min(end, start["seq"] + max(1, fitting))
        return {"seq": max(end, start["seq"])}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"seq": LogReader(self._log).head.seq}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[LogPart]:
        return self._parts(start["seq"], end["seq"])


def public_schema(schema: TableSchema) -> pa.Schema:
    """A table's changes as users see them; a definite error where a column of the table is called like one of ours."""
    taken = {name.lower(): name for name in schema.names}
    fields = []
    for field in [*change_schema(schema), pa.field(EXACT, EXACT_TYPE), pa.field(EXACT_BEFORE, EXACT_TYPE)]:
        name = field.name.replace(PREFIX, "_", 1) if field.name.startswith(PREFIX) else field.name
        if name != field.name and name in taken:
            raise DefiniteError(
                f"table {schema.table} has a column {taken[name]}, the name of a column that this format adds",
                "read the table with tailrace.cut, or rename the column",
                table=str(schema.table),
            )
        fields.append(field.with_name(name))
    return pa.schema(fields)


def transactions(reader: LogReader, after: int, upto: int) -> pa.Table:
    """One row a transaction, tables by name."""
    names = {version.relation: str(version.schema.table) for version in reader.schemas()}
    rows = reader.transactions(after, upto)
    relations = rows.column("relations").combine_chunks()
    codes = relations.values.to_pylist()
    tables = pa.ListArray.from_arrays(relations.offsets, pa.array([names.get(code) for code in codes], pa.string()))
    columns = [rows.column(name) for name in ("seq", "xid", "commit_ordinal", "commit_time_us", "changes", "bytes")]
    arrays = [
        column.cast(field.type) if not pa.types.is_timestamp(field.type) else column.combine_chunks().view(field.type)
        for column, field in zip([*columns, tables], TRANSACTIONS, strict=True)
    ]
    return pa.table(arrays, schema=TRANSACTIONS)


def find_log(path: Path) -> Path:
    """The log at `path`: itself, or the one of the lake that is there."""
    inside = path / "_tailrace" / "log"
    return inside if inside.is_dir() else path
