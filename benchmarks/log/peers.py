"""What one would pick instead, with the same durability: a synced commit for each group.

Each peer stores every record under its position and reads all of them back in that order. That is less than the log
does: they know nothing of transactions.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from benchmarks.log.cache import forget_cache

Rows = list[tuple[Any, ...]]
_FIXED = struct.Struct("<QQQBI")


def disk(path: Path, groups: list[bytes]) -> tuple[float, float]:
    """The limit: seconds to write the same bytes and sync after each group, and to read them from the disk."""
    file = path / "raw"
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY)
    start = time.perf_counter()
    for group in groups:
        os.write(descriptor, group)
        os.fdatasync(descriptor)
    written = time.perf_counter() - start
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    buffer = memoryview(bytearray(8 << 20))
    start = time.perf_counter()
    with file.open("rb", buffering=0) as content:
        while content.readinto(buffer):
            pass
    return written, time.perf_counter() - start


def sqlite(path: Path, groups: list[Rows]) -> tuple[float, float]:
    database = sqlite3.connect(path / "peer.sqlite", isolation_level=None)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = full")
    database.execute(
        "create table record (position integer primary key, ordinal, xid, sub_xid, kind, relation, payload)"
    )
    start = time.perf_counter()
    for group in groups:
        database.execute("begin")
        database.executemany("insert into record values (?, ?, ?, ?, ?, ?, ?)", group)
        database.execute("commit")
    written = time.perf_counter() - start
    database.close()
    forget_cache(path)
    start = time.perf_counter()
    database = sqlite3.connect(path / "peer.sqlite")
    count = sum(1 for _ in database.execute("select * from record order by position"))
    seconds = time.perf_counter() - start
    database.close()
    _require(count, groups)
    return written, seconds


def lmdb(path: Path, groups: list[Rows]) -> tuple[float, float]:
    library = importlib.import_module("lmdb")
    store = library.open(str(path / "peer.lmdb"), map_size=16 << 30, sync=True)
    start = time.perf_counter()
    for group in groups:
        with store.begin(write=True) as transaction, transaction.cursor() as cursor:
            cursor.putmulti(((_key(row), _value(row)) for row in group), append=True)
    written = time.perf_counter() - start
    store.close()
    forget_cache(path)
    start = time.perf_counter()
    store = library.open(str(path / "peer.lmdb"), map_size=16 << 30, readonly=True)
    with store.begin() as transaction, transaction.cursor() as cursor:
        count = sum(1 for _ in cursor.iternext())
    seconds = time.perf_counter() - start
    store.close()
    _require(count, groups)
    return written, seconds


def rocksdb(path: Path, groups: list[Rows]) -> tuple[float, float]:
    rocks = importlib.import_module("rocksdict")
    store = rocks.Rdict(str(path / "peer.rocksdb"), rocks.Options(raw_mode=True))
    options = rocks.WriteOptions()
    options.sync = True
    start = time.perf_counter()
    for group in groups:
        batch = rocks.WriteBatch(raw_mode=True)
        for row in group:
            batch.put(_key(row), _value(row))
        store.write(batch, options)
    written = time.perf_counter() - start
    store.close()
    forget_cache(path)
    start = time.perf_counter()
    store = rocks.Rdict(str(path / "peer.rocksdb"), rocks.Options(raw_mode=True))
    count = sum(1 for _ in store.items())
    seconds = time.perf_counter() - start
    store.close()
    _require(count, groups)
    return written, seconds


PEERS: dict[str, Callable[[Path, list[Rows]], tuple[float, float]]] = {
    "sqlite": sqlite,
    "lmdb": lmdb,
    "rocksdb": rocksdb,
}


def rows_of(groups: list[pa.RecordBatch]) -> list[Rows]:
    """The same records as tuples, made before the clock starts."""
    position = 0
    found = []
    for group in groups:
        columns = [column.to_pylist() for column in group.columns]
        found.append(list(zip(range(position, position + group.num_rows), *columns, strict=True)))
        position += group.num_rows
    return found


def _key(row: tuple[Any, ...]) -> bytes:
    return int(row[0]).to_bytes(8, "big")


def _value(row: tuple[Any, ...]) -> bytes:
    payload: bytes = row[6]
    return _FIXED.pack(*row[1:6]) + payload


def _require(count: int, groups: list[Rows]) -> None:
    if count != sum(len(group) for group in groups):
        raise AssertionError(f"{count} records came back")
