"""The journal of a bucket keeps every line, whatever a crash cuts short and however many lines were folded."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.s3 import S3Server

from tailrace.errors import DefiniteError
from tailrace.storage.bucket import Bucket
from tailrace.storage.bucket_files import ObjectTag
from tailrace.storage.bucket_journal import BucketJournal

LINES = [f"line {number}" for number in range(1, 8)]


class Died(Exception):  # noqa: N818
    """As a process does that is killed: nothing after it is done."""


@dataclass
class Steps:
    """How many more changes are made before the process dies."""

    left: int
    made: int = 0

    def take(self) -> None:
        if self.made == self.left:
            raise Died
        self.made += 1


@dataclass(frozen=True)
class DyingBucket(Bucket):
    """Dies before one of the changes that it is asked for. Deletes one object after the other."""

    steps: Steps = field(default_factory=lambda: Steps(1 << 30))

    def put_new(self, name: str, content: bytes) -> bool:
        self.steps.take()
        return super().put_new(name, content)

    def put_over(self, name: str, content: bytes, tag: ObjectTag | None) -> ObjectTag | None:
        self.steps.take()
        return super().put_over(name, content, tag)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.steps.take()
            super().delete([name])


@pytest.fixture
def bucket(s3: S3Server, tmp_path: Path) -> Bucket:
    return s3.bucket(f"{s3.make_bucket(uuid.uuid4().hex)}/lake/cuts", tmp_path / "cache")


def dying(bucket: Bucket, steps: int) -> DyingBucket:
    return DyingBucket(bucket.place, bucket.folder, bucket.patience, bucket.cache_root, Steps(steps))


def died_at(bucket: Bucket, steps: int) -> bool:
    """Whether a writer that folds dies before this change."""
    journal = BucketJournal(dying(bucket, steps), loose_min=4)
    try:
        for line in LINES:
            journal.append(line)
        journal.replace(LINES[2:])
        journal.append("after")
    except Died:
        return True
    return False


def test_a_crash_between_any_two_changes_of_an_append_or_a_fold_keeps_every_line(
    bucket: Bucket,
) -> None:
    wanted = [LINES[:count] for count in range(len(LINES) + 1)] + [LINES[2:], [*LINES[2:], "after"]]
    seen = []
    for steps in range(100):
        place = bucket.at(str(steps))
        has_died = died_at(place, steps)
        left = BucketJournal(place).lines()
        assert left in wanted
        seen.append(wanted.index(left))
        # The next process continues from whatever is there.
        after = BucketJournal(place, loose_min=4)
        after.append("next")
        assert BucketJournal(place).lines() == [*left, "next"]
        assert after.end == BucketJournal(place).end
        if not has_died:
            break
    assert seen == sorted(seen), "a line that was there is never gone"
    assert {*seen} == {*range(len(wanted))}


def test_objects_of_folded_lines_that_a_crash_left_are_deleted_by_the_next_fold(bucket: Bucket) -> None:
    journal = BucketJournal(bucket)
    for line in LINES:
        journal.append(line)
    left = DyingBucket(bucket.place, bucket.folder, bucket.patience, bucket.cache_root, Steps(3))
    with pytest.raises(Died):
        BucketJournal(left).replace(LINES)
    assert len(bucket.names()) == 1 + len(LINES) - 2
    assert BucketJournal(bucket).lines() == LINES
    BucketJournal(bucket).replace(LINES[1:])
    assert bucket.names() == ["folded.json"]
    assert BucketJournal(bucket).lines() == LINES[1:]


def test_a_reader_that_polls_sees_each_line_once_while_lines_are_folded(bucket: Bucket) -> None:
    writer, reader = BucketJournal(bucket, loose_min=3), BucketJournal(bucket)
    seen: list[str] = []
    for number in range(20):
        end, mark = reader.end, reader.mark
        assert reader.lines(end) == []
        writer.append(f"line {number}")
        assert reader.mark != mark
        seen += reader.lines(end)
    assert seen == [f"line {number}" for number in range(20)]
    assert (reader.first(), reader.recent()[-1]) == ("line 0", "line 19")
    assert len(bucket.names()) <= 6


def test_a_reader_that_looks_seldom_misses_nothing_that_was_folded_meanwhile(bucket: Bucket) -> None:
    writer, reader = BucketJournal(bucket, loose_min=4), BucketJournal(bucket)
    writer.append("first")
    end = reader.end
    for number in range(11):
        writer.append(f"line {number}")
    assert reader.lines(end) == [f"line {number}" for number in range(11)]
    writer.replace(["only"])
    assert reader.end == writer.end == 12
    assert (reader.lines(), reader.recent(), reader.first()) == (["only"], ["only"], "only")
    writer.replace([])
    assert (reader.lines(), reader.recent(), reader.first(), reader.end) == ([], [], None, 12)


def test_a_second_writer_is_refused_and_hides_no_line(bucket: Bucket) -> None:
    """Two must never write. One that was thought dead and wakes up late is told."""
    BucketJournal(bucket).append("one")
    for change in (lambda late: late.append("ours"), lambda late: late.replace([])):
        late = BucketJournal(OvertakenBucket(bucket.place, bucket.folder, bucket.patience, bucket.cache_root))
        before = BucketJournal(bucket).lines()
        with pytest.raises(DefiniteError, match="another process appends"):
            change(late)
        assert BucketJournal(bucket).lines() == [*before, "theirs"]


@dataclass(frozen=True)
class OvertakenBucket(Bucket):
    """Another process appends, and folds, just before each change."""

    def _overtake(self, loose_min: int) -> None:
        own = Bucket(self.place, self.folder, self.patience, self.cache_root)
        BucketJournal(own, loose_min).append("theirs")

    def put_new(self, name: str, content: bytes) -> bool:
        self._overtake(100)
        return super().put_new(name, content)

    def put_over(self, name: str, content: bytes, tag: ObjectTag | None) -> ObjectTag | None:
        self._overtake(1)
        return super().put_over(name, content, tag)


def test_a_damaged_fold_is_named(bucket: Bucket) -> None:
    bucket.put("folded.json", b"[]")
    with pytest.raises(DefiniteError, match=r"folded\.json is damaged"):
        BucketJournal(bucket).lines()
