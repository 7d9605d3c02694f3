"""Waiting for transactions that had begun to write to a table before its changes were sent.

Such a transaction shows neither in a state taken while it runs nor, as far as it was early, in the stream. A lock that
a write takes is held until its transaction ends, so the locks of one moment tell which transactions those are.

A standby does not know its primary's locks. It knows the oldest transaction that runs there, so it waits for all that
are older than the last one that ended, the one that published the table among them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import psycopg

from tailrace.source.door.values import Problem, Waiting
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.server.connection import KeptConnection

QUERIES = load("rows/earlier_writers.sql")
TURN_SECONDS = 0.2

Writers = dict[str, int | None]
"""Transactions, each with the process that runs it; none where it is prepared."""


def settle(asked: KeptConnection, relations: Sequence[int], waiting: Waiting) -> None:
    """Returns when every transaction has ended that was writing to one of the tables at the call."""

    def writers(conn: psycopg.Connection) -> Writers:
        return dict(conn.execute(QUERIES["writers"], {"oids": list(relations)}).fetchall())

    _settle_standby(asked, waiting)
    left = asked.ask(writers)
    while left:
        pids = sorted(pid for pid in left.values() if pid is not None)
        who = ", ".join(f"pid {pid}" for pid in pids) or "a prepared transaction"
        ends = " ".join(f"select pg_terminate_backend({pid});" for pid in pids) or "see pg_prepared_xacts"
        waiting(Problem(f"a copy waits for {who}, which wrote to the table", f"let it end, or end it: {ends}"))
        time.sleep(TURN_SECONDS)
        still = asked.ask(writers)
        left = {each: pid for each, pid in left.items() if each in still}


def _settle_standby(asked: KeptConnection, waiting: Waiting) -> None:
    def running(conn: psycopg.Connection) -> tuple[int, int, bool]:
        oldest, upto, is_standby = conn.execute(QUERIES["running"]).fetchone() or (0, 0, False)
        return oldest, upto, is_standby

    oldest, upto, is_standby = asked.ask(running)
    while is_standby and oldest < upto:
        waiting(
            Problem(
                f"a copy from a standby waits for transactions of its primary that are older than {upto}",
                "on the primary: select pid, backend_xid, query from pg_stat_activity where backend_xid is not null;",
            )
        )
        time.sleep(TURN_SECONDS)
        oldest, _, is_standby = asked.ask(running)
