"""What Spark costs a small publish, and what a second core gains a large one.

python -m benchmarks.engine [--quick] [--folder FOLDER] [--only PART]

    cost      a few changes to each of five small tables, published by Spark and in this process by turns
    speedup   a first copy and a large publish with one core, with two, and on a cluster of two workers of one core each

In `cost` both do the same to the same tables. What counts is how long Spark's job takes beyond the longest of its
tasks, and how much longer the whole publish takes than in this process, where one thread does the work. The second
figure also has what a task does more slowly than a process that has done the same a moment ago.

In `speedup` each Spark is warm and has a process of its own; they take turns with the same rows and the same changes.
The database server works on the same cores, whichever Spark it works for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.aims import Aim, report
from benchmarks.engine import cost, speedup
from benchmarks.engine.scale import FULL, QUICK
from demo.embedded import EmbeddedPostgres

PARTS = {"cost": cost.measure, "speedup": speedup.measure}
SERVER = {"max_wal_size": "16GB", "shared_buffers": "512MB"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, changes and rounds, to try it")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; repeatable")
    options = parser.parse_args()
    aims: list[Aim] = []
    for name, measure in PARTS.items():
        if options.only is None or name in options.only:
            with (
                tempfile.TemporaryDirectory(prefix="tailrace-", dir=options.folder) as folder,
                EmbeddedPostgres(Path(folder) / "data", settings=SERVER) as server,
            ):
                aims += measure(server, Path(folder), QUICK if options.quick else FULL)
    return report(aims)


if __name__ == "__main__":
    sys.exit(main())
