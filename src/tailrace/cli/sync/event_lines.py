"""A connector's events as JSON lines, for programs that run `tailrace sync --json`.

Every event is one line, except those that come several times a second: of each of these kinds there is a line a second,
and the newest is never left out, because it is printed before the next event of another kind and at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tailrace.cli.console import print_json
from tailrace.connector.events import CutPublished, Event, SnapshotProgressed, StreamProgressed, fields_of
from tailrace.hidden import masked_in

FREQUENT = (SnapshotProgressed, StreamProgressed)
LINE_SECONDS = 1.0


class EventLines:
    """Prints events. Use as a context manager, so that the newest figures are printed too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[type, dict[str, Any]] = {}
        """The newest of each frequent kind that is not printed yet."""
        self._printed_at: dict[type, float] = {}

    def __enter__(self) -> EventLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._print_waiting()

    def show(self, event: Event) -> None:
        """One event."""
        if not isinstance(event, FREQUENT):
            self._print_waiting()
            print_json(_fields(event), is_line=True)
            return
        kind = type(event)
        if self._clock() - self._printed_at.get(kind, -LINE_SECONDS) < LINE_SECONDS:
            self._waiting[kind] = _fields(event)
            return
        self._printed_at[kind] = self._clock()
        self._waiting.pop(kind, None)
        print_json(_fields(event), is_line=True)

    def _print_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for fields in waiting.values():
            print_json(fields, is_line=True)


def _fields(event: Event) -> dict[str, Any]:
    fields = fields_of(event)
    if isinstance(event, CutPublished):
        fields["committed"] = _moment(event.cut.position.time_us)
        fields["published"] = _moment(event.cut.published_us)
    return {"time": _moment(time.time_ns() // 1000), "event": type(event).__name__, **masked_in(fields)}


def _moment(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
