"""Which of the log's transactions a state of the database shows: a pure decision.

A transaction is in the server's log before others see it: its commit record is written first, and it may then wait for
a standby for as long as that is away. So a state is no place in the log. A *view* says what it shows:

    primary   {"xmin": 740, "xmax": 745, "xip": [741, 743]}   all before 745, but for those two that were open
    standby   {"replayed": 50331648}                          all whose commit ends at or before this ordinal

The server's own list of open transactions is always empty on a standby. But there a transaction is seen when its commit
is replayed, and commits are replayed in the order of the log. So the view of a standby is what it had replayed before
its state was taken. Some more may be shown: what was replayed until it was taken.

After a gap, a view has `gap_from` too, where the log ended: the server that follows may have begun again to count its
transactions, so of those before none is unseen for its number alone, and none at all if they are void (`history`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.source.door.values import View


def unseen(view: View, transactions: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each of some logged transactions, whether the view does not show it."""
    is_old = np.zeros(len(transactions), np.bool_)
    if "gap_from" in view:
        is_old = transactions.column("commit_ordinal").to_numpy() <= np.uint64(view["gap_from"])
    is_void = is_old & view.get("is_void", False)
    if "replayed" in view:
        ends = transactions.column("end_ordinal").to_numpy()
        return np.asarray((ends > np.uint64(view["replayed"])) & ~is_void)
    xids = widened(transactions.column("xid").to_numpy(), view["xmax"])
    is_open = np.isin(xids, np.array(view["xip"], np.int64))
    return np.asarray(((xids >= view["xmax"]) & ~is_old) | (is_open & ~is_void))


def widened(xids: np.ndarray[Any, Any], near: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The stream has the last 32 bits of a transaction's number alone: the whole number that is nearest to `near`."""
    distance = (xids.astype(np.uint32) - np.uint32(near & 0xFFFFFFFF)).view(np.int32)
    return distance.astype(np.int64) + near
