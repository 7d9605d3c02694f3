"""Offsets that Kafka Connect and Debezium's engine keep, read from whatever a person can get hold of:

    the answer of GET /connectors/NAME/offsets           {"offsets": [{"partition": {...}, "offset": {...}}]}
    one entry of it                                      {"partition": {...}, "offset": {...}}
    records of the offsets topic, a line each, with      ["shop",{"server":"shop"}]<TAB>{"lsn":24023128}
      the key first, as a console consumer prints them,
      or as JSON                                         {"key": "[\\"shop\\",…]", "payload": "{\\"lsn\\":…}"}
    the file of a FileOffsetBackingStore                 a map of byte arrays in Java's serialised form

Of several records of one partition the last one counts, as in the topic; one without a value removes it. Pure: bytes
in, entries out. What cannot be read is a definite error that says where.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.offsets.java import MAGIC, read_byte_map
from tailrace.offsets.layout import Wire, shown

_HINT = "give it the answer of GET /connectors/NAME/offsets, records of the offsets topic, or the offsets file"


@dataclass(frozen=True)
class StoredOffset:
    """What a store has for one partition of one connector."""

    connector: str | None
    """None where the store does not say."""
    partition: Wire
    offset: Wire


def read_offsets(content: bytes) -> list[StoredOffset]:
    """Every offset in a file's content, whichever of the forms it has."""
    if content.startswith(MAGIC):
        return _kept(_from_file_store(content))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DefiniteError("these are not offsets: neither text nor Java's serialised form", _HINT) from None
    whole = _json(text)
    if isinstance(whole, Mapping) and "offsets" in whole:
        return _kept(_from_answer(whole))
    if isinstance(whole, Mapping) and "partition" in whole:
        return _kept(_from_answer({"offsets": [whole]}))
    return _kept(_from_records(text))


def choose(found: Sequence[StoredOffset], connector: str | None = None, server: str | None = None) -> StoredOffset:
    """The one that is meant. A definite error when none or several are."""
    chosen = [
        each
        for each in found
        if (connector is None or each.connector in (connector, None))
        and (server is None or server in each.partition.values())
    ]
    if len(chosen) == 1:
        return chosen[0]
    there = ", ".join(sorted(f"{each.connector or '?'} {json.dumps(dict(each.partition))}" for each in found)) or "none"
    what = "several offsets are there" if chosen else "no such offset is there"
    raise DefiniteError(f"{what}: {there}", "name one with --connector NAME or --server PREFIX")


def _kept(records: Iterator[tuple[str | None, Wire, Wire | None]]) -> list[StoredOffset]:
    kept: dict[str, StoredOffset] = {}
    for connector, partition, offset in records:
        key = json.dumps([connector, dict(partition)], sort_keys=True)
        kept.pop(key, None)
        if offset is not None:
            kept[key] = StoredOffset(connector, partition, offset)
    return list(kept.values())


def _from_answer(whole: Wire) -> Iterator[tuple[str | None, Wire, Wire | None]]:
    entries = whole["offsets"]
    if not isinstance(entries, list):
        raise DefiniteError(f"offsets {shown(entries)} is not an array", _HINT)
    for number, entry in enumerate(entries):
        place = f"offsets[{number}]"
        if not isinstance(entry, Mapping) or "partition" not in entry:
            raise DefiniteError(f"{place} {shown(entry)} has no partition", _HINT)
        yield None, _object(entry["partition"], f"{place}.partition"), _offset(entry.get("offset"), f"{place}.offset")


def _from_file_store(content: bytes) -> Iterator[tuple[str | None, Wire, Wire | None]]:
    try:
        found = read_byte_map(content)
    except ValueError as error:
        raise DefiniteError(f"the offsets file cannot be read: {error}", "restore it from a backup") from None
    for number, (key, value) in enumerate(found.items(), 1):
        place = f"entry {number} of the offsets file"
        yield _record(place, _decoded(key, place), None if value is None else _decoded(value, place))


def _from_records(text: str) -> Iterator[tuple[str | None, Wire, Wire | None]]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise DefiniteError("there are no offsets in it", _HINT)
    for number, line in lines:
        place = f"line {number}"
        whole = _json(line)
        if isinstance(whole, Mapping) and "key" in whole:
            key, value = whole["key"], whole["payload"] if "payload" in whole else whole.get("value")
            yield _record(place, _unpacked(key), _unpacked(value))
            continue
        try:
            parsed, end = json.JSONDecoder().raw_decode(line.lstrip())
        except (ValueError, RecursionError):
            raise DefiniteError(f"{place} is not a record of an offsets topic: {shown(line)}", _HINT) from None
        rest = line.lstrip()[end:].strip()
        yield _record(place, parsed, None if rest in ("", "null") else _unpacked(rest))


def _record(place: str, key: Any, value: Any) -> tuple[str | None, Wire, Wire | None]:
    """The key is `["name", {partition}]`, in an envelope where the converter adds schemas."""
    key, value = _bare(key), _bare(value)
    if not (isinstance(key, list) and len(key) == 2 and isinstance(key[0], str)):
        raise DefiniteError(f'{place}: the key {shown(key)} is not ["connector", {{partition}}]', _HINT)
    return key[0], _object(key[1], f"{place}: the partition"), _offset(value, f"{place}: the offset")


def _bare(value: Any) -> Any:
    return value["payload"] if isinstance(value, Mapping) and set(value) == {"schema", "payload"} else value


def _offset(value: Any, place: str) -> Wire | None:
    return None if value is None else _object(value, place)


def _object(value: Any, place: str) -> Wire:
    if not isinstance(value, Mapping):
        raise DefiniteError(f"{place} {shown(value)} is not an object", _HINT)
    return value


def _decoded(content: bytes, place: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise DefiniteError(f"{place} is not JSON: {shown(content)}", _HINT) from None


def _unpacked(value: Any) -> Any:
    """JSON inside a text, as tools print records."""
    found = _json(value) if isinstance(value, str) else value
    return value if found is _NOT_JSON else found


_NOT_JSON = object()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOT_JSON
