"""Oracle's `commit_scn`: for each redo thread, the last commit that was processed, in every format it ever had.

    until 1.4     1234                        a number
    until 1.9.4   "1234"                      the same as a text
    1.9.5         "1234:00f2.0a.1:2:1"        SCN, rollback segment, SQL sequence number, redo thread
    1.9.6 on      "1234:1:5af8-978a"          SCN, redo thread, transactions that committed at that SCN

A RAC has a redo thread for each node: the entries are separated by commas. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tailrace.offsets.codecs import INT_MAX, number_in
from tailrace.offsets.layout import FieldCodec

SCN_MAX = 10**38 - 1
"""Oracle's widest number. An SCN may have more than 64 bits."""
_TRANSACTION = re.compile(r"[0-9a-fA-F]{1,32}")
_PLAIN_THREAD = 1


@dataclass(frozen=True, order=True)
class ThreadCommit:
    """The last commit of one redo thread."""

    thread: int
    scn: int
    transactions: tuple[str, ...] = ()
    """Those that committed at exactly this SCN, in lower-case hex. Others at it may not have been seen yet."""

    def emit(self) -> str:
        return f"{self.scn}:{self.thread}:{'-'.join(self.transactions)}"


CommitScn = tuple[ThreadCommit, ...]
"""By redo thread."""


def parse_scn(value: Any) -> int:
    """A text; a number until 1.4."""
    if type(value) is int and 0 <= value <= SCN_MAX:
        return value
    if not isinstance(value, str):
        raise ValueError
    return number_in(value, 0, SCN_MAX)


def parse(value: Any) -> CommitScn:
    """Any of the formats. ValueError for anything else."""
    if type(value) is int:
        return (ThreadCommit(_PLAIN_THREAD, parse_scn(value)),)
    if not isinstance(value, str):
        raise ValueError
    found = tuple(sorted(_thread(each.strip()) for each in value.split(",")))
    threads = [each.thread for each in found]
    if len(set(threads)) < len(threads):
        twice = next(thread for thread in threads if threads.count(thread) > 1)
        raise ValueError(f"redo thread {twice} is there twice")
    if len(found) > 1 and any(":" not in each for each in value.split(",")):
        raise ValueError("an SCN without its redo thread stands alone")
    return found


def _thread(value: str) -> ThreadCommit:
    match value.split(":"):
        case [scn]:
            return ThreadCommit(_PLAIN_THREAD, parse_scn(scn))
        case [scn, thread, transactions]:
            names = transactions.split("-") if transactions else []
            for name in names:
                if not _TRANSACTION.fullmatch(name):
                    raise ValueError(f"{name[:40]!r} is not a transaction in hex")
            return ThreadCommit(_thread_number(thread), parse_scn(scn), tuple(sorted({n.lower() for n in names})))
        case [scn, _, _, thread]:
            # Rollback segment and SQL sequence number did not tell one commit from another, and are no longer kept.
            return ThreadCommit(_thread_number(thread), parse_scn(scn))
    raise ValueError("an entry has 1, 3 or 4 parts")


def _thread_number(value: str) -> int:
    return number_in(value, 1, INT_MAX)


def emit(commits: CommitScn) -> str:
    return ",".join(each.emit() for each in commits)


SCN = FieldCodec("scn", "a system change number", parse_scn, str, {"type": "string", "pattern": "^[0-9]{1,38}$"})
COMMIT_SCN = FieldCodec(
    "commit-scn",
    "an SCN for each redo thread, such as 1234:1:5af8-978a,1240:2:78f8",
    parse,
    emit,
    {"type": "string", "pattern": "^[0-9]+:[0-9]+:[0-9a-f-]*(,[0-9]+:[0-9]+:[0-9a-f-]*)*$"},
)
