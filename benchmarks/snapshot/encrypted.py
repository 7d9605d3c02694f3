"""What encryption costs the reading of rows: one table over TCP, read in the clear and encrypted, by one reader.

Only libpq can read an encrypted connection, and hands out one row a call (`source/postgres/rows/copy_out.py`). The
server is one that is installed on this machine: the embedded ones have no TLS.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import time
from pathlib import Path

import psycopg
from benchmarks.figures import console, seconds, show
from demo.embedded import EmbeddedPostgres, installed

from tailrace.source.postgres.source import PostgresSource

ROWS = 3_000_000
CHUNK_BYTES = 64 << 20
TABLE = """
create table wide as
select n as id, n * 7 as amount, md5(n::text) as name, now() + n * interval '1 s' as at, 'some text of ' || n as note
from generate_series(1, {rows}) n;
alter table wide add primary key (id);
analyze wide
"""


def measure(folder: Path, scale: float, rounds: int) -> None:
    """Print the seconds of both, and the processor time of the reader."""
    versions = [(programs, version) for version in range(30, 14, -1) if (programs := installed(version)) is not None]
    if not versions:
        console.print("no Postgres is installed on this machine; TAILRACE_POSTGRES_BIN can name one")
        return
    server = EmbeddedPostgres(folder / "encrypted")
    server.bin_dir, server.version = versions[0]
    rows = int(ROWS * scale)
    with server:
        _encrypt(server, folder)
        dsn = server.create_database("encrypted")
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(TABLE.format(rows=rows))
        lines = []
        for name, mode in (("in the clear", "disable"), ("encrypted", "require")):
            times = [_read(f"{dsn}?sslmode={mode}", rows) for _ in range(1 + rounds)][1:]
            wall, processor = (statistics.median(column) for column in zip(*times, strict=True))
            lines.append([name, seconds(wall), seconds(processor), f"{processor / rows * 1e6:.2f} µs"])
        show(f"{rows:,} rows, one reader", ["", "seconds", "processor", "a row"], lines)


def _encrypt(server: EmbeddedPostgres, folder: Path) -> None:
    """Have the server take encrypted connections too, with a certificate that is made here."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=benchmark"]
    made = ["-keyout", "server.key", "-out", "server.crt"]
    subprocess.run(["openssl", "req", "-x509", *key, *made], cwd=folder, check=True, capture_output=True)
    owner = server.data_dir.owner()
    for name in ("server.key", "server.crt"):
        copy = Path(shutil.copy(folder / name, server.data_dir / name))
        shutil.chown(copy, owner, owner)
        copy.chmod(0o600)
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("alter system set ssl = on")
        conn.execute("select pg_reload_conf()")


def _read(dsn: str, rows: int) -> tuple[float, float]:
    """Seconds and processor seconds for all rows, as Arrow."""
    source = PostgresSource(dsn)
    (table,) = source.tables(["wide"], [])
    with source.snapshot() as point:
        (table,) = source.describe([table.table]).values()
        begun, used = time.perf_counter(), time.process_time()
        chunks = source.chunks(table, CHUNK_BYTES)
        count = sum(batch.num_rows for chunk in chunks for batch in source.read_chunk(point, chunk, table.schema))
        assert count == rows
        return time.perf_counter() - begun, time.process_time() - used
