"""Changes to the orders, paced.

python -m benchmarks.incremental.load DSN ROWS PER_SECOND   writes until its input ends; prints its changes so far
"""

from __future__ import annotations

import sys
import time

import psycopg
from benchmarks.children import end_of_input
from benchmarks.orders import Orders

EACH = 10
"""Changes a transaction: five updates, four inserts, a delete."""
SHOW_EVERY = 20
BEHIND_SECONDS_MAX = 1.0
"""What it could not commit before this is not made up for."""


def main() -> int:
    dsn, rows, per_second = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    end = end_of_input()
    orders, committed, due = Orders(dsn, "orders", rows), 0, time.monotonic()
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not end.is_set():
            with connection.transaction():
                orders.change_some(connection, EACH)
            committed += EACH
            if committed % (EACH * SHOW_EVERY) == 0:
                print(committed, flush=True)
            due = max(due + EACH / per_second, time.monotonic() - BEHIND_SECONDS_MAX)
            end.wait(max(0.0, due - time.monotonic()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
