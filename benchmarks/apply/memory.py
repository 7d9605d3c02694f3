"""What the driver needs for a large transaction and for one ten times as large.

python -m benchmarks.apply.memory DSN LAKE   publishes what the log has, and prints what that took

Each is published by a process of its own, as a connector would that is started again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.aims import Aim
from benchmarks.apply.scale import Scale
from benchmarks.figures import PeakMemory, console, seconds, show
from benchmarks.lakes import SteppedLake
from benchmarks.orders import Orders
from demo.embedded import EmbeddedPostgres

GROWTH_MAX = 1.25
EACH = 10_000
"""Changes a statement."""


def measure(server: EmbeddedPostgres, folder: Path, scale: Scale) -> list[Aim]:
    dsn = server.create_database("memory")
    # As many rows as the larger transaction changes or deletes.
    orders = Orders(dsn, "orders", scale.transactions[-1]).load()
    lake = SteppedLake(dsn, folder / "lake-memory")
    console.print(f"{scale.transactions[-1]:,} rows copied in {seconds(lake.copy())}")
    found = {}
    for changes in scale.transactions:
        orders.change(changes, each=EACH, at_once=True)
        captured = lake.fill_log()
        command = [sys.executable, "-m", "benchmarks.apply.memory", dsn, str(lake.home.lake)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found[changes] = {"captured": captured, **json.loads(done.stdout.splitlines()[-1])}
    show(
        "one transaction, published",
        ["changes", "into the log", "published", "driver", "Python workers", "JVM"],
        [
            [
                f"{changes:,}",
                seconds(each["captured"]),
                seconds(each["published"]),
                *(f"{each.get(kind, 0.0):,.0f} MB" for kind in ("driver", "python", "jvm")),
            ]
            for changes, each in found.items()
        ],
    )
    smaller, larger = (found[changes]["driver"] for changes in scale.transactions)
    return [Aim("driver-memory-growth", larger / smaller, GROWTH_MAX, at_most=True)]


def main() -> int:
    dsn, path = sys.argv[1:]
    lake = SteppedLake(dsn, Path(path))
    with PeakMemory() as memory, lake.publisher() as publisher:
        published = publisher.publish()
    print(json.dumps({"published": published, **memory.mb}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
