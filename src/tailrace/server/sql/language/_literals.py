"""Names and texts as they are written in SQL, and what they mean: as in standard SQL, with names in small letters."""

from __future__ import annotations

import re

_SINGLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(
    r"''|\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})"
    r"|x(?P<hex>[0-9a-fA-F]{1,2})|(?P<octal>[0-7]{1,3})|(?P<other>.))",
    re.DOTALL,
)
_UPPER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def plain_name(written: str) -> str:
    """A-Z are folded, other letters left alone."""
    return written.translate(_UPPER)


def quoted_name(written: str) -> str:
    return written[1:-1].replace('""', '"')


def text(written: str) -> str:
    return written[1:-1].replace("''", "'")


def escaped_text(written: str) -> str:
    """`E'a\\nb'`. ValueError, with a reason for a person, where the escapes are no text. `\\x` and octal ones are bytes
    of UTF-8."""
    inside, parts, end = written[2:-1], bytearray(), 0
    for escape in _ESCAPE.finditer(inside):
        parts += inside[end : escape.start()].encode() + _meant(escape)
        end = escape.end()
    parts += inside[end:].encode()
    try:
        whole = parts.decode()
    except UnicodeDecodeError:
        raise ValueError("the bytes of this text are not UTF-8") from None
    if "\0" in whole:
        raise ValueError("a text cannot have the character 0")
    return whole


def _meant(escape: re.Match[str]) -> bytes:
    match escape.lastgroup:
        case None:
            return b"'"
        case "low":
            high, low = int(escape["high"], 16), int(escape["low"], 16)
            return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).encode()
        case "short" | "long":
            return _character(int(escape[escape.lastgroup], 16)).encode()
        case "hex":
            return bytes([int(escape["hex"], 16)])
        case "octal":
            return bytes([int(escape["octal"], 8) & 0xFF])
        case _:
            return _SINGLE.get(escape["other"], escape["other"]).encode()


def _character(number: int) -> str:
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise ValueError(f"U+{number:04X} is not a character")
    return chr(number)
