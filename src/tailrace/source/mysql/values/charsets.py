"""Which character set a collation has, and text of a character set as UTF-8.

Both makes of server number their collations alike; what a server calls `utf8` is `utf8mb3` here. A character set is
known here only if every character of it becomes the same in Python as on the servers, which a test asks them. A value
in any other one would be a guess, so its table is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DefiniteError

BINARY = "binary"
_BINARY_COLLATION = 63
_NO_PAD = 1024
"""A collation of MariaDB that does not ignore trailing spaces has the number of the one that does, and this."""

_COLLATIONS: Mapping[str, tuple[int, tuple[int | tuple[int, int], ...]]] = {
    "armscii8": (1, (32, 64)),
    "ascii": (1, (11, 65)),
    "big5": (2, (1, 84)),
    "cp1250": (1, (26, 34, 44, 66, 99)),
    "cp1251": (1, (14, 23, (50, 52))),
    "cp1256": (1, (57, 67)),
    "cp1257": (1, (29, (58, 59))),
    "cp850": (1, (4, 80)),
    "cp852": (1, (40, 81)),
    "cp866": (1, (36, 68)),
    "cp932": (2, ((95, 96),)),
    "dec8": (1, (3, 69)),
    "eucjpms": (3, ((97, 98),)),
    "euckr": (2, (19, 85)),
    "gb18030": (4, ((248, 250),)),
    "gb2312": (2, (24, 86)),
    "gbk": (2, (28, 87)),
    "geostd8": (1, ((92, 93),)),
    "greek": (1, (25, 70)),
    "hebrew": (1, (16, 71)),
    "hp8": (1, (6, 72)),
    "keybcs2": (1, (37, 73)),
    "koi8r": (1, (7, 74)),
    "koi8u": (1, (22, 75)),
    "latin1": (1, (5, 8, 15, 31, (47, 49), 94)),
    "latin2": (1, (2, 9, 21, 27, 77)),
    "latin5": (1, (30, 78)),
    "latin7": (1, (20, (41, 42), 79)),
    "macce": (1, (38, 43)),
    "macroman": (1, (39, 53)),
    "sjis": (2, (13, 88)),
    "swe7": (1, (10, 82)),
    "tis620": (1, (18, 89)),
    "ucs2": (2, (35, 90, (128, 151), 159, (640, 642), (2560, 2815))),
    "ujis": (3, (12, 91)),
    "utf16": (4, ((54, 55), (101, 124), (672, 674), (2816, 3071))),
    "utf16le": (4, (56, 62)),
    "utf32": (4, ((60, 61), (160, 183), (736, 738), (3072, 3327))),
    "utf8mb3": (3, (33, 76, 83, (192, 215), 223, (576, 578), (2048, 2303))),
    "utf8mb4": (4, ((45, 46), (224, 247), (255, 323), (608, 610), (2304, 2559))),
}
"""Of each character set the bytes that a character may take, and its collations: numbers, or the first and the last of
a range. Those of MariaDB's `_NO_PAD` are left out."""

_CODECS = {
    "ascii": "ascii",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp932": "cp932",
    "euckr": "cp949",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "hp8": "hp_roman8",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "tis620": "tis_620",
    "ucs2": "utf_16_be",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "utf8mb3": "utf_8",
    "utf8mb4": "utf_8",
}
_UNLIKE_PYTHON = {
    "cp866": {0xFC: "\u207f", 0xFD: "\xb2"},
    "greek": {0xA1: "\u02bd", 0xA2: "\u02bc"},
    "hebrew": {0xAF: "\u203e"},
    "koi8u": {0x95: "\u2022"},
    "latin1": {code: chr(code) for code in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},
}
_UTF8 = ("utf8mb3", "utf8mb4")
_WIDE = ("ucs2", "utf16", "utf16le", "utf32")
"""Their ASCII characters take more than one byte."""
_UTF8_BYTES_MAX = 3
"""Of a character of a set whose characters take one byte."""


@dataclass(frozen=True)
class Charset:
    """A character set of the servers."""

    name: str
    bytes_max: int
    """Of one character."""

    @property
    def is_known(self) -> bool:
        """Whether its text can be read."""
        return self.name in _CODECS


@cache
def charset_of(collation: int) -> Charset | None:
    """The character set of a collation; None for the number of none. That of `binary` has no characters, but bytes."""
    if collation == _BINARY_COLLATION:
        return Charset(BINARY, 1)
    number = collation
    if _NO_PAD < collation < 2 * _NO_PAD:
        number = collation - _NO_PAD
    for name, (bytes_max, collations) in _COLLATIONS.items():
        for each in collations:
            first, last = each if isinstance(each, tuple) else (each, each)
            if first <= number <= last:
                return Charset(name, bytes_max)
    return None


@cache
def charset_named(name: str) -> Charset:
    """KeyError for a name that no character set has."""
    return Charset(BINARY, 1) if name == BINARY else Charset(name, _COLLATIONS[name][0])


def text_of(value: bytes, charset: str) -> str:
    """One value. A definite error for bytes that are no text of the character set."""
    odd = _UNLIKE_PYTHON.get(charset)
    try:
        if odd is not None:
            return "".join(odd.get(byte) or bytes((byte,)).decode(_CODECS[charset]) for byte in value)
        return value.decode(_CODECS[charset])
    except UnicodeDecodeError:
        raise _invalid(charset) from None


def to_utf8(values: Any, charset: str) -> Any:
    """A binary array of text in a character set as a string array. A definite error for bytes that are no such
    text."""
    if charset not in _UTF8 and (charset in _WIDE or not _is_ascii(values)):
        values = _one_by_one(values, charset) if charset_named(charset).bytes_max > 1 else _looked_up(values, charset)
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        raise _invalid(charset) from None


def _invalid(charset: str) -> DefiniteError:
    return DefiniteError(f"a value is no text of its character set {charset}", "find and mend it at the source")


def _data(values: Any) -> tuple[Any, Any]:
    """The bytes of all values, and where each of them begins there."""
    offsets = np.frombuffer(values.buffers()[1] or bytes(4), np.int32)[values.offset :][: len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return data, offsets - offsets[0]


def _is_ascii(values: Any) -> bool:
    return bool((_data(values)[0] < 0x80).all())


def _one_by_one(values: Any, charset: str) -> Any:
    encoded = values.dictionary_encode()
    texts = [text_of(value.as_py(), charset).encode() for value in encoded.dictionary]
    return pa.array(texts, pa.binary()).take(encoded.indices)


def _looked_up(values: Any, charset: str) -> Any:
    """Of a character set whose characters take one byte: all bytes at once."""
    letters, lengths = _single_bytes(charset)
    data, offsets = _data(values)
    taken = lengths[data]
    if not taken.all():
        raise _invalid(charset)
    moved = np.concatenate(([0], np.cumsum(taken)))[offsets].astype(np.int32)
    written = letters[data][np.arange(_UTF8_BYTES_MAX) < taken[:, None]]
    valid = pc.is_valid(values).buffers()[1] if values.null_count else None
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(values), [valid, pa.py_buffer(moved), pa.py_buffer(written)], values.null_count
    )


@cache
def _single_bytes(charset: str) -> tuple[Any, Any]:
    """For each byte the UTF-8 of its character, and how long that is; 0 where there is no such character."""
    letters, lengths = np.zeros((256, _UTF8_BYTES_MAX), np.uint8), np.zeros(256, np.int64)
    for code in range(256):
        try:
            found = text_of(bytes((code,)), charset).encode()
        except DefiniteError:
            continue
        letters[code, : len(found)] = np.frombuffer(found, np.uint8)
        lengths[code] = len(found)
    return letters, lengths
