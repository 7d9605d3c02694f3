"""Whether a file of a Delta table is what its writer wrote, after a power cut that may have emptied, cut or zeroed it.

Hadoop writes checksums beside each file, and Spark refuses a file that does not match them. So they decide, where they
are there; else the file is read to its end.
"""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.lake.delta.log.versions import RowsFile, checksums_of
from tailrace.lake.delta.rows.deletion_vectors import Vector, framed

_PARQUET_MAGIC = b"PAR1"
_CHECKSUMS_MAGIC = b"crc\0"


def is_whole(path: Path) -> bool:
    """Every byte of it."""
    try:
        matches = _matches_checksums(path)
        if matches is not None:
            return matches
        return _is_readable_parquet(path) if path.suffix == ".parquet" else _is_json(path)
    except OSError:
        return False


def is_whole_rows(rows: RowsFile, *, to_the_end: bool) -> bool:
    """A Parquet file and its deletion vector: their sizes and ends, or every byte that the commit brought."""
    if not _has_end(rows) or not (rows.vector is None or _is_whole_vector(rows.vector)):
        return False
    return not (to_the_end and rows.is_new) or is_whole(rows.path)


def _has_end(rows: RowsFile) -> bool:
    try:
        return rows.path.stat().st_size == rows.bytes and has_parquet_end(rows.path)
    except OSError:
        return False


def has_parquet_end(path: Path) -> bool:
    """A file that lost its end, or has zeros there, is told at once."""
    try:
        with path.open("rb") as file:
            file.seek(-len(_PARQUET_MAGIC), 2)
            return file.read() == _PARQUET_MAGIC
    except OSError:
        return False


def _is_whole_vector(vector: Vector) -> bool:
    """Delta frames each one with its length and a checksum."""
    try:
        return _matches_checksums(vector.path) is not False and bool(framed(vector))
    except OSError:
        return False


def _matches_checksums(path: Path) -> bool | None:
    """None where there are no checksums."""
    try:
        known = checksums_of(path).read_bytes()
    except FileNotFoundError:
        return None
    if len(known) < 8 or known[:4] != _CHECKSUMS_MAGIC:
        return False
    (part_bytes,) = struct.unpack(">I", known[4:8])
    if not part_bytes:
        return False
    with path.open("rb") as file:
        parts = iter(lambda: file.read(part_bytes), b"")
        return b"".join(struct.pack(">I", zlib.crc32(part)) for part in parts) == known[8:]


def _is_readable_parquet(path: Path) -> bool:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except pa.ArrowException:
        return False
    return True


def _is_json(path: Path) -> bool:
    """One value a line, as in a commit."""
    lines = path.read_bytes().splitlines()
    try:
        return bool([json.loads(line) for line in lines])
    except ValueError:
        return False
