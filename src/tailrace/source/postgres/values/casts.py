"""Postgres's text output to Arrow values, a column at a time.

The text is what every connection of ours makes the server write: datestyle ISO, TimeZone UTC,
hex bytea, shortest exact floats. A value never becomes a neighbouring one. One that the column's lake type cannot hold
is null, and its text is given beside it (`model.rows.exact`); text that no value of the type has is a definite error.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DefiniteError
from tailrace.model.rows.lake_types import arrow_type, element_type, is_limited
from tailrace.source.postgres.values._arrays import parse

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
"""The text of a value that its lake type can hold. Only looked at where Arrow has met one that it cannot."""

_BEYOND = {
    "date": r"-?infinity|\d{4,}-\d\d-\d\d( BC)?",
    "timestamp_ntz": rf"-?infinity|\d{{4,}}-\d\d-\d\d {_TIME}( BC)?",
    "timestamp": rf"-?infinity|\d{{4,}}-\d\d-\d\d {_TIME}\+00( BC)?",
    "decimal": r"NaN|-?Infinity|-?\d+(\.\d+)?",
}
"""The text of every value that a Postgres type of this lake type has."""
_SHOWN_BYTES_MAX = 60


def cast(text: Any, lake: str) -> tuple[Any, Any | None]:
    """A string or binary array of Postgres text as an array of the lake type's Arrow type, and the texts of values that
    it cannot hold: null in all other rows, None where there are none.

    Nulls stay null. Raises `DefiniteError` with the first text that no value of the type has; the caller knows the
    table and the column and adds them.
    """
    element = element_type(lake)
    if element is not None:
        return _arrays(text.cast(pa.binary()), element)
    if not is_limited(lake):
        return _plain(text, lake), None
    text = text.view(pa.string()) if pa.types.is_binary(text.type) else text
    try:
        return pc.cast(text, arrow_type(lake)), None
    except pa.ArrowInvalid as error:
        return _limited(text, lake, str(error))


def _plain(text: Any, lake: str) -> Any:
    """Values of a type whose lake type holds them all."""
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


def _limited(text: Any, lake: str, reason: str) -> tuple[Any, Any]:
    """Some values do not fit."""
    family = lake.partition("(")[0]
    fits = pc.match_substring_regex(text, f"^({_FORMS[family]})$")
    odd = pc.if_else(fits, None, text)
    known = pc.match_substring_regex(odd, f"^({_BEYOND[family]})$")
    if not pc.all(known, min_count=0).as_py():
        raise _refusal(odd.filter(pc.invert(known)), lake, reason)
    try:
        return pc.cast(pc.if_else(fits, text, None), arrow_type(lake)), odd
    except pa.ArrowInvalid:
        return _one_by_one(text, lake)


def _one_by_one(text: Any, lake: str) -> tuple[Any, Any]:
    """A decimal of the right form may have too many digits. Each different text is tried."""
    encoded = text.dictionary_encode()
    found = []
    for each in range(len(encoded.dictionary)):
        try:
            found.append(pc.cast(encoded.dictionary.slice(each, 1), arrow_type(lake)))
        except pa.ArrowInvalid:
            found.append(pa.nulls(1, arrow_type(lake)))
    values = pa.concat_arrays(found).take(encoded.indices)
    return values, pc.if_else(values.is_valid(), None, text)


def _arrays(text: Any, element: str) -> tuple[Any, Any | None]:
    """Arrays of one dimension; those of another form, or with an element that does not fit, are kept as text."""
    found = parse(text)
    is_flat, counts = found.is_flat, found.counts
    elements, odd = cast(found.elements, element)
    if odd is not None:
        rows = np.repeat(np.arange(len(text)), counts)
        is_flat[rows[odd.is_valid().to_numpy(zero_copy_only=False)]] = False
        elements = elements.filter(pa.array(is_flat[rows]))
        counts = np.where(is_flat, counts, 0)
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, elements, arrow_type(f"array<{element}>"), mask=pa.array(~is_flat))
    is_odd = text.is_valid().to_numpy(zero_copy_only=False) & ~is_flat
    return lists, _utf8(pc.if_else(pa.array(is_odd), text, None)) if is_odd.any() else None


def _utf8(text: Any) -> Any:
    try:
        return pc.cast(text, pa.string())
    except pa.ArrowInvalid:
        raise DefiniteError(
            "a value is not valid UTF-8", "the database's encoding must be one the server converts to UTF8"
        ) from None


def _boolean(text: Any) -> Any:
    if text.null_count == 0 and (np.diff(_offsets(text)) == 1).all():
        first = int(_offsets(text)[0])
        letters = np.frombuffer(text.buffers()[2] or b"", dtype=np.uint8)[first : first + len(text)]
        is_true = letters == ord("t")
        if (is_true | (letters == ord("f"))).all():
            return pa.array(is_true)
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
            return DefiniteError(f"the value '{shown}' has no exact {lake}")
    return DefiniteError(f"a value has no exact {lake}: {reason}")
