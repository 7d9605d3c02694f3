"""The book of signals: every signal that a lake's connector has received, and what became of it. One file, replaced as
a whole.

The connector writes it; any process reads it. In the same file lies how far each channel has been read: a signal and
the place after it become durable together, so that no crash can lose a signal or take one twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.model.signal import Arrival, Signal, SignalRecord, SignalState
from tailrace.storage.files import read_json, write_json

ENDED_MAX = 1000
ENDED_CHARACTERS_MAX = 4 << 20
"""How many of the newest ended signals are kept, and how much data of theirs."""

Place = Mapping[str, Any]
"""How far a channel has been read, in its own words. JSON."""


@dataclass(frozen=True)
class _Content:
    records: Mapping[str, SignalRecord] = field(default_factory=dict)
    """By id, oldest first."""
    places: Mapping[str, Place] = field(default_factory=dict)


class SignalBook:
    """`signals.json`."""

    def __init__(
        self,
        path: Path,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        ended_max: int = ENDED_MAX,
        ended_characters_max: int = ENDED_CHARACTERS_MAX,
    ) -> None:
        self._path = path
        self._now_us = now_us
        self._ended_max = ended_max
        self._ended_characters_max = ended_characters_max
        self._seen: tuple[tuple[int, int, int], _Content] | None = None

    def records(self) -> list[SignalRecord]:
        """Every signal that is kept, oldest first."""
        return list(self._load().records.values())

    def open_records(self) -> list[SignalRecord]:
        """Those that have not ended, oldest first: what a connector has to do, or to continue."""
        return [record for record in self.records() if not record.has_ended]

    def place(self, channel: str) -> Place | None:
        """How far a channel has been read; None if it never was."""
        return self._load().places.get(channel)

    def enter(self, arrivals: Sequence[Arrival], places: Mapping[str, Place]) -> list[SignalRecord]:
        """Record what has arrived and how far channels have been read. Durable when this returns.

        A signal of an id that the book has changes nothing. Returns the new ones; those with a reason are rejected.
        """
        was, now = self._load(), self._now_us()
        new: dict[str, SignalRecord] = {}
        for each in arrivals:
            if each.signal.id not in was.records:
                state = SignalState.RECEIVED if each.reason is None else SignalState.REJECTED
                new.setdefault(each.signal.id, SignalRecord(each.signal, each.channel, state, now, now, each.reason))
        content = _Content({**was.records, **new}, {**was.places, **places})
        if content != was:
            self._store(content)
        return list(new.values())

    def set(self, id_: str, state: SignalState, result: str | None = None) -> None:
        """Durable when this returns. A signal that has ended, or that the book no longer has, stays as it is."""
        was = self._load()
        record = was.records.get(id_)
        if record is None or record.has_ended or (record.state, record.result) == (state, result):
            return
        changed = replace(record, state=state, result=result, updated_us=self._now_us())
        self._store(_Content({**was.records, id_: changed}, was.places))

    def _load(self) -> _Content:
        mark = self._mark()
        if self._seen is None or self._seen[0] != mark:
            self._seen = mark, self._read()
        return self._seen[1]

    def _read(self) -> _Content:
        try:
            found = read_json(self._path)
            if found is None:
                return _Content()
            records = [_record(**fields) for fields in found["signals"]]
            return _Content({record.signal.id: record for record in records}, dict(found["places"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise DefiniteError(f"{self._path} is damaged", "restore it from a backup") from None

    def _store(self, content: _Content) -> None:
        kept = _Content(self._kept(content.records), content.places)
        listed = [asdict(record) for record in kept.records.values()]
        write_json(self._path, {"signals": listed, "places": kept.places})
        self._seen = self._mark(), kept

    def _kept(self, records: Mapping[str, SignalRecord]) -> dict[str, SignalRecord]:
        """All that have not ended, and the newest of the others."""
        left, room, forgotten = self._ended_max, self._ended_characters_max, set()
        for id_, record in reversed(list(records.items())):
            if record.has_ended:
                left, room = left - 1, room - len(record.signal.data)
                if left < 0 or room < 0:
                    forgotten.add(id_)
        return {id_: record for id_, record in records.items() if id_ not in forgotten}

    def _mark(self) -> tuple[int, int, int]:
        """Changes when the file is replaced."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return 0, 0, 0
        return found.st_ino, found.st_size, found.st_mtime_ns


def _record(signal: dict[str, str], state: str, **fields: Any) -> SignalRecord:
    return SignalRecord(signal=Signal(**signal), state=SignalState(state), **fields)
