"""Java's properties files: `key=value` lines, as Kafka Connect's standalone mode reads them."""

from __future__ import annotations

import re

_LINE = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Every key with its value; of a key that is there twice, the last one."""
    entries = {}
    for line in _whole_lines(text):
        entry = _LINE.fullmatch(line)
        if entry is not None:
            entries[_plain(entry["key"])] = _plain(entry["value"])
    return entries


def _whole_lines(text: str) -> list[str]:
    """Without blank lines and comments. A line that ends with an odd number of backslashes continues in the next."""
    whole: list[str] = []
    is_open = False
    for line in re.split(r"\r\n|\r|\n", text):
        stripped = line.lstrip(" \t\f")
        if not is_open and (not stripped or stripped[0] in "#!"):
            continue
        ends_open = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        part = stripped[:-1] if ends_open else stripped
        if is_open:
            whole[-1] += part
        else:
            whole.append(part)
        is_open = ends_open
    return whole


def _plain(text: str) -> str:
    return _ESCAPE.sub(
        lambda escape: chr(int(escape[1], 16)) if escape[1] else _LETTERS.get(escape[2], escape[2]), text
    )
