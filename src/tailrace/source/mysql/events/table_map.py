"""The event that announces a table before its rows: every column's name and type, as of that very moment.

With `binlog_row_metadata = FULL` it says all that reading the rows takes. So a shape never depends on when a table was
looked at, and no statement has to be understood to know it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tailrace.model.rows.column_names import distinct
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.mysql.events.event import Event, Fields
from tailrace.source.mysql.values.charsets import BINARY, Charset, charset_of, text_of
from tailrace.source.mysql.values.column_type import BLOBS, GEOMETRIES, TEXTS, ColumnType

(_TINY, _SHORT, _LONG, _FLOAT, _DOUBLE, _TIMESTAMP_OLD, _LONGLONG, _INT24, _DATE, _TIME_OLD, _DATETIME_OLD) = (
    *(1, 2, 3, 4, 5),
    *(7, 8, 9, 10, 11, 12),
)
_YEAR, _NEWDATE, _VARCHAR, _BIT, _TIMESTAMP, _DATETIME, _TIME = 13, 14, 15, 16, 17, 18, 19
_VECTOR, _JSON, _NEWDECIMAL, _ENUM, _SET, _BLOB, _VAR_STRING, _STRING, _GEOMETRY = (
    *(242, 245, 246, 247, 248),
    *(252, 253, 254, 255),
)
_INTEGERS = {_TINY: "tinyint", _SHORT: "smallint", _INT24: "mediumint", _LONG: "int", _LONGLONG: "bigint"}
_FLOATS = {_FLOAT: "float", _DOUBLE: "double"}
_PLAIN = {_DATE: "date", _NEWDATE: "date", _YEAR: "year", _JSON: "json"}
_FRACTIONAL = {_TIMESTAMP: "timestamp", _DATETIME: "datetime", _TIME: "time"}
_OLD_TIMES = {_TIMESTAMP_OLD: "timestamp", _TIME_OLD: "time", _DATETIME_OLD: "datetime"}
_COMPRESSED = (140, 141)
_NUMERIC = (*_INTEGERS, *_FLOATS, _NEWDECIMAL)
_SIGNED = (*_NUMERIC, _YEAR)
"""A year has a sign too where signs are listed."""
_META_BYTES = {
    **dict.fromkeys((_FLOAT, _DOUBLE, _BLOB, _GEOMETRY, _JSON, _VECTOR, *_FRACTIONAL, 140), 1),
    **dict.fromkeys((_VARCHAR, _BIT, _NEWDECIMAL, _STRING, _VAR_STRING, _ENUM, _SET, 141), 2),
}
_FLOAT_BYTES = 4
_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _NAMES, _SET_LABELS, _ENUM_LABELS, _GEOMETRY_TYPES = range(1, 8)
_KEY, _KEY_WITH_PREFIX, _LABELS_DEFAULT_CHARSET, _LABELS_CHARSET, _VISIBILITY, _VECTOR_SIZES = range(8, 14)
_KNOWN_FIELDS = range(1, 14)


@dataclass(frozen=True)
class UnknownType:
    """A column whose values cannot be read. A table that has one is not copied."""

    reason: str


@dataclass(frozen=True)
class AnnouncedTable:
    """A table as it was when the rows after it were written."""

    table_id: int
    """The server's number for it, which means nothing after the next change of its definition or of the file."""
    table: TableId
    columns: tuple[tuple[str, ColumnType | UnknownType], ...]
    key: tuple[str, ...]
    """The primary key; empty without one."""

    @property
    def problem(self) -> str | None:
        """Why its rows cannot be read; None if they can."""
        found = (f"column {name}: {type_.reason}" for name, type_ in self.columns if isinstance(type_, UnknownType))
        return next(found, None)

    @property
    def types(self) -> list[ColumnType]:
        """Of a table without a problem."""
        return [type_ for _, type_ in self.columns if isinstance(type_, ColumnType)]

    def schema(self, relation: int) -> TableSchema:
        """The shape of a table without a problem."""
        columns = tuple(Column(name, type_.lake_type, str(type_)) for name, type_ in self._readable())
        return distinct(TableSchema(self.table, relation, columns, self.key))

    def _readable(self) -> list[tuple[str, ColumnType]]:
        return [(name, type_) for name, type_ in self.columns if isinstance(type_, ColumnType)]


@dataclass(frozen=True)
class _Wire:
    """One column as the fixed part of the event has it."""

    kind: int
    meta: bytes

    @property
    def real_kind(self) -> int:
        """An enum and a set come as a string, with two bits of its length in the same byte."""
        if self.kind != _STRING:
            return self.kind
        return self.meta[0] if self.meta[0] in (_ENUM, _SET) else _STRING

    @property
    def string_bytes(self) -> int:
        return self.meta[1] | ((self.meta[0] & 0x30) ^ 0x30) << 4

    @property
    def is_text(self) -> bool:
        """Whether it counts where character sets are listed: text, and bytes of the same types."""
        return self.real_kind in (_STRING, _VAR_STRING, _VARCHAR, _BLOB)

    @property
    def has_labels(self) -> bool:
        return self.real_kind in (_ENUM, _SET)


def read_table_map(event: Event, *, is_mariadb: bool) -> AnnouncedTable:
    """`UnreadableEventError` for anything else. A column that cannot be read is named by the table's `problem`."""
    fields = Fields(event)
    table_id = fields.number(6)
    fields.number(2)
    namespace, name = (_name(fields) for _ in range(2))
    count = fields.packed()
    kinds = bytes(fields.bytes(count))
    meta = Fields(event, fields.bytes(fields.packed()))
    wires = [_wire(kind, meta) for kind in kinds]
    fields.bytes((count + 7) // 8)
    more = dict[int, memoryview]()
    while fields.left:
        number = fields.number(1)
        more[number] = fields.bytes(fields.packed())
    table = TableId(namespace, name)
    if any(number not in _KNOWN_FIELDS for number in more):
        unknown = UnknownType("the server tells something of the table that is not known here")
        return AnnouncedTable(table_id, table, (("?", unknown),), ())
    told = _Told(event, wires, more, is_mariadb)
    names = told.names()
    if names is None:
        missing = UnknownType("the binlog has no names of columns; set global binlog_row_metadata = FULL")
        return AnnouncedTable(table_id, table, (("?", missing),), ())
    columns = tuple(zip(names, told.types(), strict=True))
    return AnnouncedTable(table_id, table, columns, tuple(names[place] for place in told.key()))


def _name(fields: Fields) -> str:
    found = fields.text(fields.number(1))
    if fields.number(1):
        raise fields.wrong("a name does not end")
    return found


def _wire(kind: int, meta: Fields) -> _Wire:
    found = _Wire(kind, bytes(meta.bytes(_META_BYTES.get(kind, 0))))
    if kind == _BLOB and found.meta[0] not in BLOBS.values():
        raise meta.wrong(f"the lengths of a column have {found.meta[0]} bytes")
    return found


class _Told:
    """What the optional part of the event says of the columns."""

    def __init__(self, event: Event, wires: Sequence[_Wire], more: Mapping[int, memoryview], is_mariadb: bool) -> None:
        self._event = event
        self._is_mariadb = is_mariadb
        self._wires = wires
        self._more = more

    def names(self) -> list[str] | None:
        fields = self._fields(_NAMES)
        if fields is None:
            return None
        found = [fields.text(fields.packed()) for _ in self._wires]
        if fields.left:
            raise fields.wrong("it tells of more columns than the table has")
        return found

    def key(self) -> list[int]:
        """The places of the primary key's columns."""
        fields = self._fields(_KEY)
        if fields is not None:
            return self._places(fields, 1)
        fields = self._fields(_KEY_WITH_PREFIX)
        return [] if fields is None else self._places(fields, 2)

    def types(self) -> list[ColumnType | UnknownType]:
        signs = iter(self._signs())
        charsets = self._charsets(_DEFAULT_CHARSET, _COLUMN_CHARSET, self._has_charset)
        of_labels = self._charsets(_LABELS_DEFAULT_CHARSET, _LABELS_CHARSET, lambda wire: wire.has_labels)
        labels = {_ENUM: iter(self._labels(_ENUM_LABELS)), _SET: iter(self._labels(_SET_LABELS))}
        geometries = iter(self._numbers(_GEOMETRY_TYPES))
        sizes = iter(self._numbers(_VECTOR_SIZES))
        found = list[ColumnType | UnknownType]()
        for place, wire in enumerate(self._wires):
            kind = wire.real_kind
            sign = next(signs, None) if kind in _SIGNED else None
            if kind in _NUMERIC:
                found.append(_number_type(wire, sign))
            elif wire.is_text:
                found.append(_text_type(wire, charsets.get(place)))
            elif wire.has_labels:
                found.append(_labelled_type(kind, next(labels[kind], None), of_labels.get(place)))
            elif kind == _GEOMETRY:
                number = next(geometries, 0)
                found.append(ColumnType(GEOMETRIES[number] if number < len(GEOMETRIES) else GEOMETRIES[0]))
            elif kind == _VECTOR:
                found.append(ColumnType("vector", next(sizes, 0)))
            else:
                found.append(_other_type(wire))
        return found

    def _has_charset(self, wire: _Wire) -> bool:
        """MariaDB counts geometries among the texts, as bytes."""
        return wire.is_text or (self._is_mariadb and wire.kind == _GEOMETRY)

    def _fields(self, number: int) -> Fields | None:
        data = self._more.get(number)
        return None if data is None else Fields(self._event, data)

    def _places(self, fields: Fields, numbers: int) -> list[int]:
        found = []
        while fields.left:
            found.append(fields.packed())
            for _ in range(numbers - 1):
                fields.packed()
        if any(place >= len(self._wires) for place in found):
            raise fields.wrong("its key has a column that it does not have")
        return found

    def _signs(self) -> list[bool]:
        """Of each numeric column, whether it is unsigned; the highest bit comes first."""
        data = self._more.get(_SIGNEDNESS, memoryview(b""))
        return [bool(byte >> bit & 1) for byte in data for bit in range(7, -1, -1)]

    def _numbers(self, number: int) -> list[int]:
        fields = self._fields(number)
        found = []
        while fields is not None and fields.left:
            found.append(fields.packed())
        return found

    def _charsets(self, default: int, each: int, counts: Callable[[_Wire], bool]) -> dict[int, Charset | None]:
        """The character set of each column that counts, by the column's place."""
        places = [place for place, wire in enumerate(self._wires) if counts(wire)]
        if default in self._more:
            collation, *pairs = self._numbers(default)
            collations = dict(enumerate([collation] * len(places)))
            collations |= dict(zip(pairs[::2], pairs[1::2], strict=True))
        else:
            collations = dict(enumerate(self._numbers(each)))
        if places and sorted(collations) != list(range(len(places))):
            raise Fields(self._event).wrong("it does not tell the character set of each column")
        return {place: charset_of(collations[number]) for number, place in enumerate(places)}

    def _labels(self, number: int) -> list[list[bytes]]:
        fields = self._fields(number)
        found = []
        while fields is not None and fields.left:
            found.append([bytes(fields.bytes(fields.packed())) for _ in range(fields.packed())])
        return found


def _number_type(wire: _Wire, is_unsigned: bool | None) -> ColumnType | UnknownType:
    if is_unsigned is None:
        return UnknownType("the binlog does not tell whether it is unsigned")
    if wire.kind == _NEWDECIMAL:
        return ColumnType("decimal", wire.meta[0], wire.meta[1], is_unsigned)
    return ColumnType((_INTEGERS | _FLOATS)[wire.kind], is_unsigned=is_unsigned)


def _text_type(wire: _Wire, charset: Charset | None) -> ColumnType | UnknownType:
    if charset is None:
        return UnknownType("its collation is not known here")
    is_bytes = charset.name == BINARY
    if not is_bytes and not charset.is_known:
        return UnknownType(f"text in {charset.name} is not read yet; convert the column to utf8mb4")
    if wire.kind == _BLOB:
        names = {size: name for name, size in (BLOBS if is_bytes else TEXTS).items()}
        return ColumnType(names[wire.meta[0]], charset="" if is_bytes else charset.name)
    return _sized_text_type(wire, charset)


def _sized_text_type(wire: _Wire, charset: Charset) -> ColumnType | UnknownType:
    is_fixed = wire.kind == _STRING
    size = wire.string_bytes if is_fixed else int.from_bytes(wire.meta, "little")
    if size % charset.bytes_max:
        return UnknownType(f"its {size} bytes are no whole characters of {charset.name}")
    if charset.name == BINARY:
        return ColumnType("binary" if is_fixed else "varbinary", size)
    return ColumnType("char" if is_fixed else "varchar", size // charset.bytes_max, charset=charset.name)


def _labelled_type(kind: int, labels: list[bytes] | None, charset: Charset | None) -> ColumnType | UnknownType:
    if not labels or charset is None:
        return UnknownType("the binlog does not tell its labels; set global binlog_row_metadata = FULL")
    if charset.name != BINARY and not charset.is_known:
        return UnknownType(f"labels in {charset.name} are not read yet; convert the column to utf8mb4")
    name = "utf8mb4" if charset.name == BINARY else charset.name
    return ColumnType("enum" if kind == _ENUM else "set", labels=tuple(text_of(label, name) for label in labels))


def _other_type(wire: _Wire) -> ColumnType | UnknownType:
    if wire.kind in _PLAIN:
        return ColumnType(_PLAIN[wire.kind])
    if wire.kind in _FRACTIONAL:
        return ColumnType(_FRACTIONAL[wire.kind], wire.meta[0])
    if wire.kind == _BIT:
        return ColumnType("bit", wire.meta[1] * 8 + wire.meta[0])
    if wire.kind in _OLD_TIMES:
        return UnknownType(f"it is a {_OLD_TIMES[wire.kind]} of an old format; alter table … force renews it")
    if wire.kind in _COMPRESSED:
        return UnknownType("compressed columns are not read yet")
    return UnknownType(f"the type with number {wire.kind} is not known here")
