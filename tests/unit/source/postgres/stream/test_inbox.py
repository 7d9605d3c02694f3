"""Messages on their way from the receiving to the writing thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tailrace.source.door.control import CaptureControl
from tailrace.source.postgres.stream.inbox import Inbox, Messages


def test_who_waits_for_messages_notices_at_once_that_capture_is_to_stop() -> None:
    control, inbox = CaptureControl(lambda _: None, keep_seconds=0.0), Inbox(1 << 20)
    control.stopping.when_set(inbox.wake)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(inbox.take, 600, 600)
        control.stopping.set()
        assert waiting.result(60) == Messages()


def test_an_inbox_that_is_made_after_capture_was_told_to_stop_waits_for_nothing() -> None:
    control, inbox = CaptureControl(lambda _: None, keep_seconds=0.0), Inbox(1 << 20)
    control.stopping.set()
    control.stopping.when_set(inbox.wake)
    assert inbox.take(600, 600) == Messages()


def test_what_came_before_is_still_taken() -> None:
    inbox = Inbox(1 << 20)
    inbox.put(Messages.of([b"one", b"two"]))
    inbox.wake()
    assert inbox.take(600, 600) == Messages.of([b"one", b"two"])
