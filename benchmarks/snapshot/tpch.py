"""The eight tables of TPC-H in Postgres."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
from demo.embedded import EmbeddedPostgres

TABLES = {
    "lineitem": "l_orderkey",
    "orders": "o_orderkey",
    "partsupp": "ps_partkey",
    "part": "p_partkey",
    "customer": "c_custkey",
    "supplier": "s_suppkey",
    "nation": "n_nationkey",
    "region": "r_regionkey",
}
"""Each with the first column of its key, the largest first."""
_PORTION_BYTES = 1 << 20


def load(dsn: str, folder: Path, scale: float) -> int:
    """Generate and load; how many rows there are."""
    generate = [str(Path(sys.executable).with_name("tpchgen-cli")), "csv", "-s", f"{scale:g}"]
    subprocess.run([*generate, f"--output-dir={folder}"], check=True, capture_output=True)
    rows = 0
    with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))
        for table in TABLES:
            path = folder / f"{table}.csv"
            with path.open("rb") as file, cursor.copy(f"copy {table} from stdin (format csv, header)") as copy:
                while portion := file.read(_PORTION_BYTES):
                    copy.write(portion)
            rows += cursor.rowcount
            path.unlink()
            cursor.execute(f"vacuum analyze {table}")
    return rows


def copy_to_nothing(server: EmbeddedPostgres, dsn: str) -> None:
    """Every row as text through two connections at once, half of each table on each, to nowhere."""
    halves: tuple[list[str], list[str]] = ([], [])
    with psycopg.connect(dsn) as connection:
        for table in TABLES:
            blocks = connection.execute(f"select pg_relation_size('{table}') / 8192 / 2").fetchone()
            assert blocks is not None
            for half, sign in zip(halves, ("<", ">="), strict=True):
                half.append(f"copy (select * from {table} where ctid {sign} '({blocks[0]},0)') to stdout")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda half: _to_nothing(server, dsn, half), halves))


def _to_nothing(server: EmbeddedPostgres, dsn: str, statements: list[str]) -> None:
    commands = [part for statement in statements for part in ("-c", statement)]
    subprocess.run([server.bin_dir / "psql", "-q", dsn, *commands], check=True, stdout=subprocess.DEVNULL)
