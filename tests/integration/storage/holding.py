"""A process that holds a lease, and says whether it does whenever it is asked: for tests that stop it or kill it."""

from __future__ import annotations

import sys

from tailrace.errors import LeaseLostError, TailraceError, TransientError
from tailrace.storage.bucket import Bucket
from tailrace.storage.lease import Lease


def hold(url: str, seconds: float, session: str, options: dict[str, str]) -> None:
    lease = Lease(Bucket.of(url, options), "lease.json", seconds, session=session or None)
    print(f"held {lease.number}", flush=True)
    for _ in sys.stdin:
        try:
            lease.require()
            print("held", flush=True)
        except LeaseLostError as error:
            print(f"lost: {error.message}", flush=True)
        except TransientError as error:
            print(f"not held: {error.message}", flush=True)


if __name__ == "__main__":
    try:
        hold(sys.argv[1], float(sys.argv[2]), sys.argv[3], dict(pair.split("=", 1) for pair in sys.argv[4:]))
    except TailraceError as error:
        print(f"failed: {error.message}", flush=True)
