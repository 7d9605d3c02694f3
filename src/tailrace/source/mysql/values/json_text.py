"""MySQL's binary JSON as the text that the server writes for it.

The text is the server's own, to the byte: a space after each comma and colon, keys in the order in which they are
stored, numbers as it prints them. A copy that was read with SELECT and one that was changed by the binlog are the same.
"""

from __future__ import annotations

import base64
import re
import struct
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.source.mysql.values.column_type import decimal_bytes
from tailrace.source.mysql.values.temporal_text import date_text, datetime_text, time_text

_OBJECTS, _ARRAYS = (0x00, 0x01), (0x02, 0x03)
_LARGE = 1
_LITERAL, _DOUBLE, _STRING, _OPAQUE = 0x04, 0x0B, 0x0C, 0x0F
_LITERALS = {0: "null", 1: "true", 2: "false"}
_INTEGERS = {0x05: "<h", 0x06: "<H", 0x07: "<i", 0x08: "<I", 0x09: "<q", 0x0A: "<Q"}
_INLINED = {False: (_LITERAL, 0x05, 0x06), True: (_LITERAL, 0x05, 0x06, 0x07, 0x08)}
_DECIMAL, _DATE, _TIME, _DATETIME, _TIMESTAMP = 246, 10, 11, 12, 7
_DEPTH_MAX = 110
"""The server refuses documents that are deeper than 100."""
_ESCAPES = {**{chr(code): f"\\u{code:04x}" for code in range(32)}, '"': '\\"', "\\": "\\\\"}
_ESCAPES |= {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ODD = re.compile(r'[\x00-\x1f"\\]')
_POINT_MIN, _POINT_MAX = -14, 15


def json_text(document: bytes) -> str:
    """A definite error for what is no document. An empty one is null, as for the server."""
    if not document:
        return "null"
    try:
        return _value(document[0], document, 1, 0)
    except (IndexError, struct.error, UnicodeDecodeError, RecursionError):
        raise _damaged() from None


def _damaged() -> DefiniteError:
    return DefiniteError("a JSON document cannot be read", "the log is damaged, or the server's format is a newer one")


def _value(type_: int, data: bytes, at: int, depth: int) -> str:
    """The value of this type that begins at `at`."""
    if depth > _DEPTH_MAX:
        raise _damaged()
    if type_ in _OBJECTS or type_ in _ARRAYS:
        return _container(type_, data[at:], depth)
    if type_ == _LITERAL:
        return _literal(data[at])
    if type_ in _INTEGERS:
        return str(struct.unpack_from(_INTEGERS[type_], data, at)[0])
    if type_ == _DOUBLE:
        return double_text(struct.unpack_from("<d", data, at)[0])
    if type_ == _STRING:
        length, at = _length(data, at)
        return quoted(_taken(data, at, length).decode())
    if type_ == _OPAQUE:
        length, begin = _length(data, at + 1)
        return _opaque(data[at], _taken(data, begin, length))
    raise _damaged()


def _container(type_: int, data: bytes, depth: int) -> str:
    """Offsets count from its first byte."""
    is_large = bool(type_ & _LARGE)
    number = "<I" if is_large else "<H"
    size = 4 if is_large else 2
    count, bytes_ = (struct.unpack_from(number, data, place * size)[0] for place in range(2))
    if bytes_ > len(data) or count > bytes_:
        raise _damaged()
    is_object = type_ in _OBJECTS
    keys_at = 2 * size
    values_at = keys_at + (count * (size + 2) if is_object else 0)
    values = []
    for place in range(count):
        entry = values_at + place * (size + 1)
        of_type = data[entry]
        if of_type in _INLINED[is_large]:
            values.append(_value(of_type, data, entry + 1, depth + 1))
        else:
            values.append(_value(of_type, data, struct.unpack_from(number, data, entry + 1)[0], depth + 1))
    if not is_object:
        return f"[{', '.join(values)}]"
    keys = []
    for place in range(count):
        at, length = struct.unpack_from(number + "H", data, keys_at + place * (size + 2))
        keys.append(quoted(_taken(data, at, length).decode()))
    return "{" + ", ".join(f"{key}: {value}" for key, value in zip(keys, values, strict=True)) + "}"


def _literal(code: int) -> str:
    if code not in _LITERALS:
        raise _damaged()
    return _LITERALS[code]


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first, and a bit that says whether another byte follows."""
    length = 0
    for place in range(5):
        byte = data[at + place]
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return length, at + place + 1
    raise _damaged()


def _taken(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise _damaged()
    return data[at : at + length]


def quoted(text: str) -> str:
    """A string of JSON."""
    return '"' + _ODD.sub(lambda found: _ESCAPES[found[0]], text) + '"'


def double_text(value: float) -> str:
    """The shortest digits that are this number, written as the server does."""
    digits, _, exponent = f"{value!r}".partition("e")
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, _, fraction = digits.partition(".")
    point = len(whole) + int(exponent or 0)
    figures = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(figures)
    figures = figures.rstrip("0")
    if not figures:
        return f"{sign}0.0"
    return sign + _placed(figures, point)


def _placed(figures: str, point: int) -> str:
    """The digits with a point after `point` of them, or with an exponent, where the server writes one."""
    if not (_POINT_MIN <= point <= _POINT_MAX or len(figures) > point > 0):
        mantissa = figures[0] + (f".{figures[1:]}" if len(figures) > 1 else "")
        return f"{mantissa}e{point - 1}"
    if point <= 0:
        return "0." + "0" * -point + figures
    if point >= len(figures):
        return figures + "0" * (point - len(figures)) + ".0"
    return f"{figures[:point]}.{figures[point:]}"


def _opaque(type_: int, value: bytes) -> str:
    if type_ == _DECIMAL:
        return decimal_text(value[2:], value[0], value[1])
    if type_ in (_DATE, _TIME, _DATETIME, _TIMESTAMP):
        return f'"{_packed_text(type_, value)}"'
    return f'"base64:type{type_}:{base64.b64encode(value).decode()}"'


def _packed_text(type_: int, value: bytes) -> str:
    packed: int = struct.unpack("<q", value)[0]
    sign, packed = packed < 0, abs(packed)
    fraction, whole = packed & 0xFFFFFF, packed >> 24
    if type_ == _TIME:
        return time_text(sign, (whole >> 12 & 0x3FF, whole >> 6 & 0x3F, whole & 0x3F), fraction, 6)
    day, month = whole >> 17 & 0x1F, whole >> 22
    date = date_text(month // 13, month % 13, day)
    if type_ == _DATE:
        return date
    return datetime_text(date, (whole >> 12 & 0x1F, whole >> 6 & 0x3F, whole & 0x3F), fraction, 6)


def decimal_text(value: bytes, precision: int, scale: int) -> str:
    """A value of decimal(p,s), from its bytes in a row, as the server writes it."""
    before = decimal_bytes(precision - scale)
    if len(value) != before + decimal_bytes(scale) or not value:
        raise _damaged()
    is_negative = not value[0] & 0x80
    mask = 0xFF if is_negative else 0
    turned = bytes((value[0] ^ 0x80 ^ mask, *(byte ^ mask for byte in value[1:])))
    whole = _digits(turned[:before], precision - scale, is_first_short=True)
    fraction = _digits(turned[before:], scale, is_first_short=False)
    text = whole.lstrip("0") or "0"
    return ("-" if is_negative else "") + text + (f".{fraction}" if scale else "")


def _digits(data: bytes, count: int, *, is_first_short: bool) -> str:
    """The digits of groups of nine; the group that has fewer comes first or last."""
    groups = [9] * (count // 9)
    if count % 9:
        groups.insert(0 if is_first_short else len(groups), count % 9)
    found, at = [], 0
    for digits in groups:
        size = decimal_bytes(digits)
        found.append(str(int.from_bytes(data[at : at + size])).zfill(digits))
        at += size
    return "".join(found)


def texts(values: Any) -> list[str | None]:
    """Of a binary array of documents."""
    return [None if each is None else json_text(each) for each in values.to_pylist()]
