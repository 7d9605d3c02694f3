"""The journal of notifications: the last ones are kept, whatever a crash left of a line."""

from __future__ import annotations

from pathlib import Path

from tailrace.lake.records.notifications import Notifications
from tailrace.model.notification import CopyStep, Notification

WHOLE = Notification(CopyStep.TABLE_COMPLETED, 7, "s-1", "shop.orders", 1000, 4, "why", 0.5, 2.25)


def test_notifications_are_read_as_they_were_told_by_any_process(tmp_path: Path) -> None:
    journal = Notifications(tmp_path / "notifications.jsonl")
    assert journal.all() == []
    told = [Notification(step, number) for number, step in enumerate(CopyStep)] + [WHOLE]
    for each in told:
        journal.append(each)
    assert Notifications(tmp_path / "notifications.jsonl").all() == told


def test_a_line_that_a_crash_cut_short_is_left_out_and_the_next_one_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "notifications.jsonl"
    journal = Notifications(path)
    journal.append(WHOLE)
    with path.open("a") as file:
        file.write('not a line of ours\n{"step":"started",' + " " * 1000)
    assert journal.all() == [WHOLE]
    journal.append(WHOLE)
    assert journal.all() == [WHOLE, WHOLE]
    assert path.read_text().endswith("}\n")


def test_the_journal_does_not_grow_for_ever(tmp_path: Path) -> None:
    journal = Notifications(tmp_path / "notifications.jsonl", file_bytes_max=1000)
    for number in range(100):
        journal.append(Notification(CopyStep.IN_PROGRESS, number))
    times = [each.time_us for each in journal.all()]
    assert times == list(range(times[0], 100)), "the last ones, with no gap"
    assert 10 < len(times) < 40
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2500
