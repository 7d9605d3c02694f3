"""Rows of a COPY, found among the server's messages."""

from __future__ import annotations

import struct

from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.source.postgres._copy_out import without_heads

ROW = st.binary(max_size=40).map(lambda body: body + b"\n")
TRICKY = st.sampled_from(
    [b"\n", b"\t\n", b"a\nd\0\0\0\x06\t\n", b"x" * 2655 + b"\n", b"d" * 5 + b"\n", b"\nd\n", b"d\0\0\0\x05\n"]
)


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">i", len(body) + 4) + body


@given(st.lists(ROW | TRICKY, min_size=1, max_size=12), st.sampled_from([b"", b"c", b"Z"]), st.integers(0, 60))
@example([b"1\n", b"2\n"], b"", 5)
def test_heads_are_written_over_and_nothing_else(rows: list[bytes], end: bytes, missing: int) -> None:
    first, sent = message(b"d", rows[0]), b"".join(message(b"d", row) for row in rows[1:])
    sent = sent[: len(sent) - missing] if missing < len(sent) else b""
    sent += message(end, b"") if end and not missing else b""
    whole, at = 1, 0
    while whole < len(rows) and at + 5 + len(rows[whole]) <= len(sent):
        at += 5 + len(rows[whole])
        whole += 1
    before = b"2\n\nd"
    buffer = bytearray(before + first + sent + b"\nd left over")
    upto, count, longest = without_heads(buffer, len(before), len(before + first + sent))
    assert (count, longest) == (whole, max(5 + len(row) for row in rows[:whole]))
    assert buffer[:upto] == before + b"".join(b"    \t" + row for row in rows[:whole])
    assert buffer[upto:] == sent[at:] + b"\nd left over"
