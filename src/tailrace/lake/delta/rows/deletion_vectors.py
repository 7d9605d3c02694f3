"""Deletion vectors: which rows of a file no longer count, as positions in a roaring bitmap.

    deletion_vector_<uuid>.bin     a format number, then vectors, each framed: its length, it, its checksum
    a vector                       a magic number, then the bitmap in the portable form of 64-bit roaring bitmaps

A file of rows names its vector in its `add` action: the file as Z85 letters of the UUID, the offset, the size.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyroaring import BitMap64

from tailrace.lake.delta.file_names import name_of
from tailrace.lake.delta.rows._damage import damaged, noticed
from tailrace.storage.door import Storage

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

    name: str
    """Of the file."""
    offset: int
    bytes: int


def vector_of(table: Storage, add: Action) -> Vector | None:
    """None without one, and for one that is in the commit itself."""
    found = add.get("deletionVector")
    if not found or found["storageType"] == "i":
        return None
    text = found["pathOrInlineDv"]
    name = name_of(table, text) if found["storageType"] == "p" else _file_name(text)
    return Vector(name, int(found.get("offset") or 0), int(found["sizeInBytes"]))


def files_of(table: Storage, action: Action) -> list[str]:
    """The files that an `add` or `remove` action names: of rows, and of deletion vectors."""
    vector = vector_of(table, action)
    return [name_of(table, action["path"]), *([vector.name] if vector else [])]


def vector_name(action: Action) -> tuple[str, str, int] | None:
    """What tells the vector of an `add` or `remove` action from every other; None without one."""
    found = action.get("deletionVector")
    return (found["storageType"], found["pathOrInlineDv"], int(found.get("offset") or 0)) if found else None


def _file_name(text: str) -> str:
    """A folder, if any, and 20 letters of Z85 that are a UUID."""
    folder, encoded = text[:-_ENCODED_UUID_LETTERS], text[-_ENCODED_UUID_LETTERS:]
    name = uuid.UUID(bytes=base64.b85decode(encoded.translate(_TO_B85)))
    return f"{folder.rstrip('/')}/deletion_vector_{name}.bin" if folder else f"deletion_vector_{name}.bin"


def vector_at(positions: np.ndarray) -> BitMap64:
    return BitMap64(array("Q", np.sort(positions).astype(np.uint64).tobytes()))


def positions_in(vector: BitMap64) -> np.ndarray:
    """In order."""
    return np.array(vector.to_array(), np.uint64).astype(np.int64)


def read_vector(table: Storage, add: Action) -> BitMap64:
    """The positions of a file's deleted rows."""
    if not add.get("deletionVector"):
        return BitMap64()
    vector = vector_of(table, add)
    if vector is None:
        content = base64.b85decode(add["deletionVector"]["pathOrInlineDv"].translate(_TO_B85))
    else:
        with noticed(vector.name):
            content = framed(table, vector)
    if struct.unpack("<i", content[:4].ljust(4)) != (_MAGIC,):
        raise damaged(add["path"], "has a damaged deletion vector")
    return BitMap64.deserialize(content[4:])


def framed(table: Storage, vector: Vector) -> bytes:
    """What a file has in its frame; nothing where its length or its checksum says something else."""
    (frame,) = table.get_ranges(vector.name, [(vector.offset, vector.offset + vector.bytes + _FRAME_BYTES)])
    if len(frame) != vector.bytes + _FRAME_BYTES:
        return b""
    length, checksum = struct.unpack(">i", frame[:4]), struct.unpack(">I", frame[-4:])
    content = frame[4:-4]
    return content if (length, checksum) == ((vector.bytes,), (zlib.crc32(content),)) else b""


def write_vectors(table: Storage, vectors: Sequence[BitMap64]) -> list[Action]:
    """Write vectors to one new file, whose content is durable. Returns how actions name each."""
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
    with table.create(f"deletion_vector_{name}.bin") as file:
        file.write(content)
    return named
