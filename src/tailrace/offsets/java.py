"""Java's serialised form, as far as offsets have it: a map of byte arrays in Kafka Connect's file store, and arrays of
keys as hex in the attributes of an incremental snapshot.

Reading takes any bytes: what is not understood is a ValueError. Writing makes arrays of texts only. Pure.
"""

from __future__ import annotations

import logging
import re
import struct
from typing import Any

MAGIC = b"\xac\xed\x00\x05"
_NULL = b"\x70"
_OBJECT_ARRAY = b"\x75\x72\x00\x13[Ljava.lang.Object;\x90\xceX\x9f\x10s)l\x02\x00\x00\x78\x70"
"""The beginning of an `Object[]`: its class, that class's number, no fields, no parent."""
_SHORT_BYTES_MAX = 0xFFFF
FILE_BYTES_MAX = 64 << 20


def is_array(value: str) -> bool:
    """Whether this is hex of a serialised array, or of null: no key has been read yet."""
    if len(value) % 2 or not re.fullmatch("[0-9a-fA-F]+", value):
        return False
    found = bytes.fromhex(value)
    return found == MAGIC + _NULL or found.startswith((MAGIC + _OBJECT_ARRAY, MAGIC + b"\x75\x72"))


def texts_to_hex(texts: tuple[str, ...] | list[str] | None) -> str:
    """An `Object[]` of texts, as Java would write it; null for None."""
    if texts is None:
        return (MAGIC + _NULL).hex()
    return (MAGIC + _OBJECT_ARRAY + struct.pack(">i", len(texts)) + b"".join(map(_text, texts))).hex()


def _text(value: str) -> bytes:
    encoded = _modified_utf8(value)
    if len(encoded) <= _SHORT_BYTES_MAX:
        return b"\x74" + struct.pack(">H", len(encoded)) + encoded
    return b"\x7c" + struct.pack(">Q", len(encoded)) + encoded


def _modified_utf8(value: str) -> bytes:
    """Java's: no zero byte, and characters beyond 16 bits as two halves of three bytes each."""
    units = value.encode("utf-16-be", "surrogatepass")
    halves = (chr(int.from_bytes(units[i : i + 2], "big")) for i in range(0, len(units), 2))
    return b"".join(b"\xc0\x80" if half == "\0" else half.encode("utf-8", "surrogatepass") for half in halves)


def read_byte_map(content: bytes) -> dict[bytes, bytes | None]:
    """A `HashMap<byte[], byte[]>`, as Kafka Connect's file store is one. ValueError for anything else."""
    if len(content) > FILE_BYTES_MAX:
        raise ValueError(f"it has more than {FILE_BYTES_MAX >> 20} MiB")
    if not content.startswith(MAGIC):
        raise ValueError("it is not in Java's serialised form")
    found = _loaded(content)
    if not isinstance(found, dict):
        raise ValueError(f"it holds a {type(found).__name__}, not a map")
    return {_bytes(key): None if value is None else _bytes(value) for key, value in found.items()}


def _bytes(value: Any) -> bytes:
    """Of a byte array: its elements, which Java has as signed numbers."""
    data = getattr(value, "_data", value)
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    try:
        return bytes(each & 0xFF for each in data)
    except TypeError:
        raise ValueError("an entry is not an array of bytes") from None


def _loaded(content: bytes) -> Any:
    import javaobj

    # It tells at length, as errors, what it is about to raise.
    logging.getLogger("javaobj").setLevel(logging.CRITICAL)
    try:
        return javaobj.loads(content, ignore_remaining_data=True)  # type: ignore[no-untyped-call]
    except Exception as error:  # It raises whatever its reader stumbles over.
        raise ValueError(f"it is damaged: {type(error).__name__}") from None
