"""What was received and is not written yet: the server's messages as plain bytes, between two threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

MESSAGE_BYTES_MORE = 64
"""What a message takes besides its bytes, about: its length here, the fixed columns of its record, its index."""


@dataclass(frozen=True)
class Messages:
    """Messages one after the other, without an object for each."""

    data: bytearray = field(default_factory=bytearray)
    lengths: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, messages: Sequence[bytes]) -> Messages:
        return cls(bytearray(b"".join(messages)), [len(message) for message in messages])

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def weight_bytes(self) -> int:
        return len(self.data) + MESSAGE_BYTES_MORE * len(self.lengths)


class Inbox:
    """Messages on their way from the receiving to the writing thread, bounded in bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._messages = Messages()
        self._changed = threading.Condition()
        self._closed: BaseException | None = None
        self._is_woken = False

    def put(self, messages: Messages) -> None:
        with self._changed:
            was_idle = not self._messages
            self._messages.data.extend(messages.data)
            self._messages.lengths.extend(messages.lengths)
            # The other thread waits for the first one, and then for a full inbox.
            if was_idle or self.is_full:
                self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        return self._messages.weight_bytes >= self._bytes_max

    @property
    def _is_over(self) -> bool:
        return self._is_woken or self._closed is not None

    def close(self, reason: BaseException) -> None:
        with self._changed:
            self._closed = reason
            self._changed.notify_all()

    def wake(self) -> None:
        """From now on `take` waits for nothing. Any thread, any signal handler."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def take(self, timeout_seconds: float, linger_seconds: float) -> Messages:
        """All that is there. Waits for a first message, and then a little for company, unless it is full.

        Raises the receiver's error once everything before it is taken."""
        with self._changed:
            if self._changed.wait_for(lambda: self._messages or self._is_over, timeout_seconds):
                self._changed.wait_for(lambda: self.is_full or self._is_over, linger_seconds)
            taken, self._messages = self._messages, Messages()
            if not taken and self._closed:
                raise self._closed
            return taken
