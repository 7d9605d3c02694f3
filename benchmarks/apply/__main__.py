"""How fast changes get from the log into the lake, next to Debezium's engine and to Spark's MERGE.

python -m benchmarks.apply [--quick] [--folder FOLDER] [--only PART]

    backlog   a million changes from the log to published tables; Debezium reads the same ones and does nothing
    merge     a thousand changes to any rows; Spark merges the same states into a copy of the same table
    sizes     a small batch in a small and in a large table
    memory    a transaction of a million changes and one of ten million: what the driver needs

Contestants take turns in one run on one machine. All is warm: the first round of each is shown and does not count.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.aims import report
from benchmarks.apply import backlog, memory, sizes
from benchmarks.apply.scale import FULL, QUICK
from demo.embedded import EmbeddedPostgres

PARTS = {"backlog": backlog.measure, "sizes": sizes.measure, "memory": memory.measure}
SERVER = {"max_wal_size": "16GB", "shared_buffers": "512MB", "max_slot_wal_keep_size": "-1"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apply")
    parser.add_argument("--quick", action="store_true", help="a tenth or less of everything, to try it")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; repeatable")
    options = parser.parse_args()
    aims = []
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
