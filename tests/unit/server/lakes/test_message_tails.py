"""Files of messages are read from their end, whatever their lines are and however they were put aside."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tailrace.server.api.messages.models import Filter, MessageInfo, MessageLevel
from tailrace.server.lakes.message_files import (
    BLOCK_BYTES,
    LINE_BYTES_MAX,
    MessageLine,
    Place,
    lines_before,
    message_files,
)

SIZES = st.lists(st.sampled_from([0, 1, 30, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1]), max_size=8)


def contents(path: Path, before: Place | None = None) -> list[bytes]:
    return [each.content for each in lines_before(message_files(path), before)]


def line(text: str = "said", level: str = "info") -> bytes:
    fields = {"time": "2026-11-19T22:00:00.000Z", "level": level, "logger": "tailrace.here", "message": text}
    return json.dumps(fields).encode()


@given(sizes=SIZES, rest=st.binary(max_size=5).filter(lambda rest: b"\n" not in rest))
def test_every_whole_line_is_read_once_from_the_newest_on(
    tmp_path_factory: object, sizes: list[int], rest: bytes
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.log"  # type: ignore[attr-defined]
    written = [b"%d:" % number + b"x" * size for number, size in enumerate(sizes)]
    path.write_bytes(b"".join(each + b"\n" for each in written) + rest)
    assert contents(path) == written[::-1]
    for number, each in enumerate(lines_before(message_files(path))):
        assert contents(path, each.place) == written[::-1][number + 1 :]


def test_a_place_stays_what_it_was_when_files_are_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"1\n2\n3\n")
    three, two, _ = lines_before(message_files(path))
    path.rename(tmp_path / "a.log.1")
    path.write_bytes(b"4\n")
    assert contents(path) == [b"4", b"3", b"2", b"1"]
    assert contents(path, three.place) == [b"2", b"1"]
    assert contents(path, Place.parse(str(two.place))) == [b"1"]
    (tmp_path / "a.log.1").unlink()
    assert contents(path, three.place) == []


def test_there_may_be_no_file(tmp_path: Path) -> None:
    assert contents(tmp_path / "none" / "a.log") == []


def test_of_a_line_without_bounds_the_beginning_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"1\n" + line("x" * 3 * LINE_BYTES_MAX) + b"\n3\n")
    last, long, first = lines_before(message_files(path))
    assert (last.content, first.content) == (b"3", b"1")
    assert LINE_BYTES_MAX <= len(long.content) <= LINE_BYTES_MAX + BLOCK_BYTES
    shown = MessageInfo.of(long)
    assert (shown.level, shown.logger) == ("info", "tailrace.here")
    assert shown.message.startswith("too long")
    assert len(shown.message) < 3000


def test_a_filter_asks_for_a_level_and_for_text_as_a_person_sees_it() -> None:
    def has(wanted: Filter, content: bytes) -> bool:
        return wanted.has(MessageLine(Place(1, 0), content))

    levels = [each.value for each in MessageLevel if has(Filter(MessageLevel.WARNING, ""), line(level=each.value))]
    assert levels == ["warning", "error", "critical"]
    for text in ('a "quoted" one', "back\\slash", "größe", "two\nlines"):
        assert has(Filter(None, text), line(f"before {text} after")), text
        assert not has(Filter(None, text), line("another")), text
    assert has(Filter(None, "TAILRACE.here"), line())


def test_what_is_no_message_is_shown_as_it_is() -> None:
    for content in (b"not JSON", b"[1]", b'{"time": 1}', b"\xff", b'{"time": "x", "level": "info", "logger": "a", "m'):
        shown = MessageInfo.of(MessageLine(Place(1, 0), content))
        assert (shown.message, shown.time) == (content.decode("utf-8", "replace"), None)


def test_times_have_a_zone_also_those_that_were_written_without_one() -> None:
    shown = MessageInfo.of(MessageLine(Place(1, 0), line().replace(b"000Z", b"123")))
    assert shown.time is not None
    assert shown.time.utcoffset() is not None
