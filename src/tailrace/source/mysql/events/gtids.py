"""Names of transactions, and sets of them.

    MySQL      uuid[:tag]:number      a set: 3e11fa47-…:1-5:11-18, one uuid after another
    MariaDB    domain-server-number   a set: the last one of each domain

A set is compared with another one by its members, never by its largest number: a replica may have holes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

_NUMBER_MAX = (1 << 63) - 1
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")

Intervals = tuple[tuple[int, int], ...]
"""Half-open, in order, with a hole between each and the next."""


@dataclass(frozen=True, order=True)
class Gtid:
    """A transaction of MySQL."""

    source: UUID
    tag: str
    number: int

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.source}{tag}:{self.number}"


@dataclass(frozen=True, order=True)
class MariaDbGtid:
    """A transaction of MariaDB. Numbers grow within a domain."""

    domain: int
    server: int
    number: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.number}"


@dataclass(frozen=True)
class GtidSet:
    """A set of MySQL's transactions."""

    members: Mapping[tuple[UUID, str], Intervals] = field(default_factory=dict)
    """By source and tag; none is empty."""

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        """As the server writes it. ValueError for anything else."""
        found: dict[tuple[UUID, str], list[tuple[int, int]]] = {}
        for part in filter(None, (each.strip() for each in text.replace("\n", "").split(","))):
            uuid, *items = (item.strip() for item in part.split(":"))
            source, tag = UUID(uuid), ""
            if not items:
                raise ValueError(f"{part!r} names no transaction")
            for item in items:
                if not item[:1].isdigit():
                    tag = _tag(item)
                    continue
                first, _, last = item.partition("-")
                interval = int(first), int(last or first) + 1
                if not 1 <= interval[0] < interval[1] <= _NUMBER_MAX + 1:
                    raise ValueError(f"{item!r} is no range of transactions")
                found.setdefault((source, tag), []).append(interval)
        return cls({key: _merged(intervals) for key, intervals in sorted(found.items())})

    def __str__(self) -> str:
        texts: dict[UUID, list[str]] = {}
        for (source, tag), intervals in sorted(self.members.items()):
            items = texts.setdefault(source, [str(source)])
            items += [tag] if tag else []
            items += [str(first) if stop == first + 1 else f"{first}-{stop - 1}" for first, stop in intervals]
        return ",".join(":".join(items) for items in texts.values())

    def __contains__(self, gtid: Gtid) -> bool:
        intervals = self.members.get((gtid.source, gtid.tag), ())
        place = bisect_right(intervals, gtid.number, key=lambda interval: interval[0])
        return place > 0 and gtid.number < intervals[place - 1][1]

    def __or__(self, other: GtidSet) -> GtidSet:
        both: dict[tuple[UUID, str], list[tuple[int, int]]] = {}
        for key, intervals in (*self.members.items(), *other.members.items()):
            both.setdefault(key, []).extend(intervals)
        return GtidSet({key: _merged(intervals) for key, intervals in sorted(both.items())})

    def __sub__(self, other: GtidSet) -> GtidSet:
        """What is in this one only."""
        left = {key: _without(mine, other.members.get(key, ())) for key, mine in self.members.items()}
        return GtidSet({key: intervals for key, intervals in left.items() if intervals})

    def __le__(self, other: GtidSet) -> bool:
        return not (self - other).members

    def with_more(self, gtids: Iterable[Gtid]) -> GtidSet:
        """With these transactions."""
        more: dict[tuple[UUID, str], list[tuple[int, int]]] = {}
        for gtid in gtids:
            more.setdefault((gtid.source, gtid.tag), []).append((gtid.number, gtid.number + 1))
        return self | GtidSet({key: _merged(intervals) for key, intervals in more.items()}) if more else self

    def to_bytes(self) -> bytes:
        """As the command that asks for a stream has it, and the first event of a file."""
        has_tags = any(tag for _, tag in self.members)
        count = len(self.members)
        # With tags, the first byte and the last one say so.
        parts = [(count << 8 | 1 | 1 << 56 if has_tags else count).to_bytes(8, "little")]
        for (source, tag), intervals in sorted(self.members.items()):
            parts.append(source.bytes)
            if has_tags:
                parts.append(bytes((len(tag) << 1,)) + tag.encode())
            parts.append(len(intervals).to_bytes(8, "little"))
            parts += [number.to_bytes(8, "little") for interval in intervals for number in interval]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> GtidSet:
        """ValueError for anything that is no set."""
        taken = _Taken(data)
        head = taken.bytes(8)
        has_tags = head[7] == 1
        count = int.from_bytes(head[1:7] if has_tags else head, "little")
        found: dict[tuple[UUID, str], list[tuple[int, int]]] = {}
        for _ in range(count):
            source = UUID(bytes=taken.bytes(16))
            tag = _tag(taken.bytes(taken.bytes(1)[0] >> 1).decode("ascii")) if has_tags else ""
            intervals = [(taken.number(), taken.number()) for _ in range(taken.number())]
            if any(first < 1 or stop <= first for first, stop in intervals):
                raise ValueError("a range of transactions is empty")
            found.setdefault((source, tag), []).extend(intervals)
        if taken.data[taken.at :]:
            raise ValueError("there is more after the set")
        return cls({key: _merged(intervals) for key, intervals in sorted(found.items()) if intervals})


@dataclass(frozen=True)
class MariaDbPosition:
    """The last transaction of each domain: all before it in its domain are in the set."""

    last: Mapping[int, MariaDbGtid] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> MariaDbPosition:
        """As the server writes it. ValueError for anything else."""
        found: dict[int, MariaDbGtid] = {}
        for part in filter(None, (each.strip() for each in text.split(","))):
            if re.fullmatch(r"\d+-\d+-\d+", part) is None:
                raise ValueError(f"{part!r} is no transaction of MariaDB")
            gtid = MariaDbGtid(*map(int, part.split("-")))
            if gtid.domain in found:
                raise ValueError(f"domain {gtid.domain} is there twice")
            found[gtid.domain] = gtid
        return cls(dict(sorted(found.items())))

    def __str__(self) -> str:
        return ",".join(str(gtid) for _, gtid in sorted(self.last.items()))

    def __contains__(self, gtid: MariaDbGtid) -> bool:
        last = self.last.get(gtid.domain)
        return last is not None and gtid.number <= last.number

    def with_more(self, gtids: Iterable[MariaDbGtid]) -> MariaDbPosition:
        """With these transactions, in the order in which they committed."""
        return MariaDbPosition({**self.last, **{gtid.domain: gtid for gtid in gtids}})


class _Taken:
    """Reads bytes from their beginning; ValueError at the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def bytes(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise ValueError("a set of transactions ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        return int.from_bytes(self.bytes(8), "little")


def _tag(text: str) -> str:
    tag = text.lower()
    if tag and _TAG.fullmatch(tag) is None:
        raise ValueError(f"{text!r} is no tag")
    return tag


def _merged(intervals: Iterable[tuple[int, int]]) -> Intervals:
    found: list[tuple[int, int]] = []
    for first, stop in sorted(intervals):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((first, stop))
    return tuple(found)


def _without(mine: Intervals, others: Intervals) -> Intervals:
    found = []
    for first, stop in mine:
        begin = first
        for other_first, other_stop in others:
            if other_stop <= begin or other_first >= stop:
                continue
            if begin < other_first:
                found.append((begin, other_first))
            begin = max(begin, other_stop)
        if begin < stop:
            found.append((begin, stop))
    return tuple(found)
