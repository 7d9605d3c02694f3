"""Whether a file of a Delta table is what its writer wrote, after a power cut that may have emptied, cut or zeroed it.

Hadoop writes checksums beside each file, and Spark refuses a file that does not match them. So they decide, where they
are there; else the file is read to its end.
"""

from __future__ import annotations

import json
import struct
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.lake.delta.file_names import checksums_of
from tailrace.lake.delta.log.versions import RowsFile
from tailrace.lake.delta.rows.deletion_vectors import Vector, framed
from tailrace.storage.door import Storage

_PARQUET_MAGIC = b"PAR1"
_CHECKSUMS_MAGIC = b"crc\0"


def is_whole(table: Storage, name: str) -> bool:
    """Every byte of it."""
    try:
        matches = _matches_checksums(table, name)
        if matches is not None:
            return matches
        return _is_readable_parquet(table, name) if name.endswith(".parquet") else _is_json(table.get(name))
    except OSError:
        return False


def is_whole_rows(table: Storage, rows: RowsFile, *, to_the_end: bool) -> bool:
    """A Parquet file and its deletion vector: their sizes and ends, or every byte that the commit brought."""
    found = table.look(rows.name)
    if found is None or found.bytes != rows.bytes or not has_parquet_end(table, rows.name, rows.bytes):
        return False
    if rows.vector is not None and not _is_whole_vector(table, rows.vector):
        return False
    return not (to_the_end and rows.is_new) or is_whole(table, rows.name)


def has_parquet_end(table: Storage, name: str, size: int) -> bool:
    """A file that lost its end, or has zeros there, is told at once."""
    try:
        return table.get_ranges(name, [(max(0, size - len(_PARQUET_MAGIC)), size)]) == [_PARQUET_MAGIC]
    except OSError:
        return False


def _is_whole_vector(table: Storage, vector: Vector) -> bool:
    """Delta frames each one with its length and a checksum."""
    try:
        return _matches_checksums(table, vector.name) is not False and bool(framed(table, vector))
    except OSError:
        return False


def _matches_checksums(table: Storage, name: str) -> bool | None:
    """None where there are no checksums."""
    try:
        known = table.get(checksums_of(name))
    except FileNotFoundError:
        return None
    if len(known) < 8 or known[:4] != _CHECKSUMS_MAGIC:
        return False
    (part_bytes,) = struct.unpack(">I", known[4:8])
    if not part_bytes:
        return False
    with table.open(name) as file:
        parts = iter(lambda: file.read(part_bytes), b"")
        return b"".join(struct.pack(">I", zlib.crc32(part)) for part in parts) == known[8:]


def _is_readable_parquet(table: Storage, name: str) -> bool:
    try:
        with table.open(name) as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except pa.ArrowException:
        return False
    return True


def _is_json(content: bytes) -> bool:
    """One value a line, as in a commit."""
    try:
        return bool([json.loads(line) for line in content.splitlines()])
    except ValueError:
        return False
