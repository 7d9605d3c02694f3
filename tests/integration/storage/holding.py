"""A process that holds a lease, and says whether it does whenever it is asked: for tests that stop it or kill it."""

from __future__ import annotations

import sys

from tailrace.errors import TailraceError
from tailrace.storage.bucket import Bucket
from tailrace.storage.lease import Lease, LeaseLostError


def hold(url: str, seconds: float, options: dict[str, str]) -> None:
    lease = Lease(Bucket.of(url, options), "lease.json", seconds)
    print(f"held {lease.number}", flush=True)
    for _ in sys.stdin:
        try:
            lease.require()
            print("held", flush=True)
        except LeaseLostError as error:
            print(f"lost: {error.message}", flush=True)


if __name__ == "__main__":
    try:
        hold(sys.argv[1], float(sys.argv[2]), dict(pair.split("=", 1) for pair in sys.argv[3:]))
    except TailraceError as error:
        print(f"failed: {error.message}", flush=True)
