"""Rows of a COPY, found among the server's messages."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.source.postgres.rows.copy_kernel import rows_end

ROW = st.binary(max_size=40).map(lambda body: body + b"\n")
TRICKY = st.sampled_from([b"\n", b"\t\n", b"a\nd\0\0\0\x06\t\n", b"x" * 70_000 + b"\n", b"\nd\n", b"d\0\0\0\x05\n"])


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">i", len(body) + 4) + body


@given(st.lists(ROW | TRICKY, max_size=12), st.sampled_from([b"", b"c", b"Z", b"d"]), st.integers(0, 60))
@example([b"1\n", b"2\n"], b"", 5)
@example([b"1\n"], b"d", 0)
def test_rows_end_before_what_is_no_whole_row(rows: list[bytes], last: bytes, missing: int) -> None:
    sent = b"".join(message(b"d", row) for row in rows)
    sent = sent[: len(sent) - missing] if missing < len(sent) else b""
    if last and not missing:
        # A length that does not count itself is none.
        sent += b"d\0\0\0\3" if last == b"d" else message(last, b"")
    before = b"d\0\0\0\x05\n"
    data = np.frombuffer(before + sent + message(b"d", b"left over\n"), np.uint8)
    assert rows_end(data, len(before), len(before + sent)) == len(before) + whole(rows, len(sent))


def whole(rows: list[bytes], count: int) -> int:
    """The bytes of the rows that are there to their end."""
    end = 0
    for row in rows:
        if end + 5 + len(row) > count:
            break
        end += 5 + len(row)
    return end
