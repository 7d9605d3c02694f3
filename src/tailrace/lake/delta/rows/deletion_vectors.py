"""Deletion vectors: which rows of a file no longer count, as positions in a roaring bitmap.

    deletion_vector_<uuid>.bin     a format number, then vectors, each framed: its length, it, its checksum
    a vector                       a magic number, then the bitmap in the portable form of 64-bit roaring bitmaps

A file of rows names its vector in its `add` action: the file as Z85 letters of the UUID, the offset, the size.
"""

from __future__ import annotations

import base64
import os
import struct
import uuid
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
from pyroaring import BitMap64

from tailrace.lake.delta.rows._damage import damaged, noticed

_FORMAT = b"\x01"
_MAGIC = 1681511377
_FRAME_BYTES = 8
"""Its length before it, its checksum after it."""
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_TO_Z85 = str.maketrans(_B85, _Z85)
_ENCODED_UUID_LETTERS = 20

Action = Mapping[str, Any]


@dataclass(frozen=True)
class Vector:
    """Where a deletion vector lies. One file may hold several."""

    path: Path
    offset: int
    bytes: int


def located(table: Path, text: str) -> Path:
    """Paths in actions are URLs, relative to the table's folder unless they begin at the root."""
    return table / unquote(urlsplit(text).path)


def vector_of(table: Path, add: Action) -> Vector | None:
    """None without one, and for one that is in the commit itself."""
    found = add.get("deletionVector")
    if not found or found["storageType"] == "i":
        return None
    text = found["pathOrInlineDv"]
    path = located(table, text) if found["storageType"] == "p" else table / _file_name(text)
    return Vector(path, int(found.get("offset") or 0), int(found["sizeInBytes"]))


def files_of(table: Path, action: Action) -> list[Path]:
    """The files that an `add` or `remove` action names: of rows, and of deletion vectors."""
    vector = vector_of(table, action)
    return [located(table, action["path"]), *([vector.path] if vector else [])]


def vector_name(action: Action) -> tuple[str, str, int] | None:
    """What tells the vector of an `add` or `remove` action from every other; None without one."""
    found = action.get("deletionVector")
    return (found["storageType"], found["pathOrInlineDv"], int(found.get("offset") or 0)) if found else None


def _file_name(text: str) -> str:
    """A folder, if any, and 20 letters of Z85 that are a UUID."""
    folder, encoded = text[:-_ENCODED_UUID_LETTERS], text[-_ENCODED_UUID_LETTERS:]
    name = uuid.UUID(bytes=base64.b85decode(encoded.translate(_TO_B85)))
    return str(Path(folder, f"deletion_vector_{name}.bin"))


def vector_at(positions: np.ndarray) -> BitMap64:
    return BitMap64(array("Q", np.sort(positions).astype(np.uint64).tobytes()))


def positions_in(vector: BitMap64) -> np.ndarray:
    """In order."""
    return np.array(vector.to_array(), np.uint64).astype(np.int64)


def read_vector(table: Path, add: Action) -> BitMap64:
    """The positions of a file's deleted rows."""
    if not add.get("deletionVector"):
        return BitMap64()
    vector = vector_of(table, add)
    if vector is None:
        content = base64.b85decode(add["deletionVector"]["pathOrInlineDv"].translate(_TO_B85))
    else:
        with noticed(vector.path):
            content = framed(vector)
    if struct.unpack("<i", content[:4].ljust(4)) != (_MAGIC,):
        raise damaged(table / add["path"], "has a damaged deletion vector")
    return BitMap64.deserialize(content[4:])


def framed(vector: Vector) -> bytes:
    """What a file has in its frame; nothing where its length or its checksum says something else."""
    with vector.path.open("rb") as file:
        file.seek(vector.offset)
        frame = file.read(vector.bytes + _FRAME_BYTES)
    if len(frame) != vector.bytes + _FRAME_BYTES:
        return b""
    length, checksum = struct.unpack(">i", frame[:4]), struct.unpack(">I", frame[-4:])
    content = frame[4:-4]
    return content if (length, checksum) == ((vector.bytes,), (zlib.crc32(content),)) else b""


def write_vectors(table: Path, vectors: Sequence[BitMap64]) -> list[Action]:
    """Write vectors to one new file, durably. Returns how actions name each."""
    name = uuid.uuid4()
    content = bytearray(_FORMAT)
    named: list[Action] = []
    for vector in vectors:
        body = struct.pack("<i", _MAGIC) + vector.serialize()
        named.append(
            {
                "storageType": "u",
                "pathOrInlineDv": base64.b85encode(name.bytes).decode().translate(_TO_Z85),
                "offset": len(content),
                "sizeInBytes": len(body),
                "cardinality": len(vector),
            }
        )
        content += struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    with (table / f"deletion_vector_{name}.bin").open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return named
