"""Values of a row as text and JSON have them, whichever engine read the row."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any


def plain(value: Any, separator: str = " ") -> Any:
    """Bytes as Postgres writes them. What is no number, text, null, list or mapping is its text; `separator` stands
    between a day and its time."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes() | bytearray():
            return f"\\x{value.hex()}"
        case datetime():
            return value.isoformat(separator)
        case list() | tuple():
            return [plain(each, separator) for each in value]
        case dict():
            return {name: plain(each, separator) for name, each in value.items()}
    return str(value)


def json_value(value: Any, separator: str = " ") -> Any:
    """The same as JSON has it: names are texts, and what JSON has no number for is its text."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case list() | tuple():
            return [json_value(each, separator) for each in value]
        case dict():
            return {str(name): json_value(each, separator) for name, each in value.items()}
    return plain(value, separator)
