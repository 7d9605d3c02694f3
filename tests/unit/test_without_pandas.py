"""Pandas stays out of a process that has no use for it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from tailrace.without_pandas import keep_pandas_out
keep_pandas_out()
import duckdb, numpy, pyarrow
pyarrow.array(numpy.arange(3))
duckdb.sql("select 1").fetchall()
print("pandas" in sys.modules)
"""


def test_arrow_and_duckdb_work_and_do_not_load_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False"]
