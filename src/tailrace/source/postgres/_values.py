"""Postgres's text output to Arrow values, a column at a time.

The text is what every connection of ours makes the server write: datestyle ISO, TimeZone UTC,
hex bytea, shortest exact floats. A value that the column's lake type cannot hold exactly is a
definite error; it never becomes null or a neighbouring value.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DefiniteError
from tailrace.model.lake_types import arrow_type

_BAD_DIGIT: Final = 255
_HEX_DIGITS = np.full(256, _BAD_DIGIT, dtype=np.uint8)
_HEX_DIGITS[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16)
_HEX_DIGITS[np.frombuffer(b"ABCDEF", dtype=np.uint8)] = np.arange(10, 16)

_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d(\.\d{1,6})?"
_INTEGER = r"-?\d+"
_FORMS = {
    "boolean": "[tf]",
    "smallint": _INTEGER,
    "int": _INTEGER,
    "bigint": _INTEGER,
    "date": _DATE,
    "timestamp_ntz": f"{_DATE} {_TIME}",
    "timestamp": rf"{_DATE} {_TIME}\+00",
    "decimal": r"-?\d+(\.\d+)?",
}
"""The text of a value that its lake type can hold. Only looked at to name the one that it cannot."""

_HINTS = {
    "date": "a lake date lies between 0001-01-01 and 9999-12-31; change the value in the source",
    "timestamp": "a lake timestamp lies between the years 1 and 9999; change the value in the source",
    "timestamp_ntz": "a lake timestamp lies between the years 1 and 9999; change the value in the source",
    "decimal": "a lake decimal has no NaN; change the value in the source, or declare the column numeric without "
    "precision to copy it as text",
}
_SHOWN_BYTES_MAX = 60


def cast(text: Any, lake: str) -> Any:
    """A string or binary array of Postgres text as an array of the lake type's Arrow type.

    Nulls stay null. Raises `DefiniteError` with the first value that has no exact lake value;
    the caller knows the table and the column and adds them.
    """
    if lake == "binary":
        return _bytea(text)
    if pa.types.is_binary(text.type):
        text = _utf8(text) if lake == "string" else text.view(pa.string())
    if lake == "string":
        return text
    if lake == "boolean":
        return _boolean(text)
    try:
        return pc.cast(text, arrow_type(lake))
    except pa.ArrowInvalid as error:
        raise _refusal(text, lake, str(error)) from None


def _utf8(text: Any) -> Any:
    try:
        return pc.cast(text, pa.string())
    except pa.ArrowInvalid:
        raise DefiniteError(
            "a value is not valid UTF-8", "the database's encoding must be one the server converts to UTF8"
        ) from None


def _boolean(text: Any) -> Any:
    truth = pc.equal(text, "t")
    if not pc.all(pc.or_(truth, pc.equal(text, "f")), min_count=0).as_py():
        raise _refusal(text, "boolean", "")
    return truth


def _bytea(text: Any) -> Any:
    """Decode `\\x0a0b…`: every value is two bytes of prefix, then two hex digits for each byte."""
    filled = pc.fill_null(text.cast(pa.binary()), rb"\x")
    offsets = _offsets(filled)
    lengths = np.diff(offsets)
    data = np.frombuffer(filled.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    prefix = offsets[:-1] - offsets[0]
    if np.any((lengths < 2) | (lengths % 2 == 1)) or np.any(
        (data[prefix] != ord("\\")) | (data[prefix + 1] != ord("x"))
    ):
        raise DefiniteError("a bytea value is not in hex format", "set bytea_output = 'hex'")
    is_digit = np.ones(len(data), dtype=np.bool_)
    is_digit[prefix] = False
    is_digit[prefix + 1] = False
    digits = _HEX_DIGITS[data[is_digit]]
    if np.any(digits == _BAD_DIGIT):
        raise DefiniteError("a bytea value has a digit that is not hex", "set bytea_output = 'hex'")
    decoded = digits[0::2] << 4 | digits[1::2]
    starts = np.concatenate(([0], np.cumsum((lengths - 2) // 2, dtype=np.int32))).astype(np.int32)
    validity = None if text.null_count == 0 else pc.is_valid(text).buffers()[1]
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(text), [validity, pa.py_buffer(starts), pa.py_buffer(decoded)], text.null_count
    )


def _offsets(array: Any) -> Any:
    raw = np.frombuffer(array.buffers()[1] or bytes(4), dtype=np.int32)
    return raw[array.offset : array.offset + len(array) + 1]


def _refusal(text: Any, lake: str, reason: str) -> DefiniteError:
    """Name the first value that does not have the lake type's form, or else give Arrow's reason."""
    family = lake.partition("(")[0]
    form = _FORMS.get(family)
    if form is not None:
        odd = text.filter(pc.invert(pc.match_substring_regex(text, f"^{form}$")))
        if len(odd) > 0:
            shown = odd.view(pa.binary())[0].as_py()[:_SHOWN_BYTES_MAX].decode(errors="replace")
            return DefiniteError(f"the value '{shown}' has no exact {lake}", _HINTS.get(family))
    return DefiniteError(f"a value has no exact {lake}: {reason}")
