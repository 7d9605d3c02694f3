"""Codecs that several layouts share: numbers, texts, flags, lists of numbers in hex, JSON inside a text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tailrace.offsets.layout import FieldCodec

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
TEXT_CHARACTERS_MAX = 1 << 20


def same(value: Any) -> Any:
    return value


def whole_number(minimum: int = 0, maximum: int = LONG_MAX, rule: str = "long") -> FieldCodec:
    """A number without a fraction, in the range of a Java long or less."""

    def parse(value: Any) -> int:
        # True is an int to Python.
        if type(value) is not int or not minimum <= value <= maximum:
            raise ValueError
        return value

    says = f"a whole number from {minimum} to {maximum}"
    return FieldCodec(rule, says, parse, same, {"type": "integer", "minimum": minimum, "maximum": maximum})


def text(rule: str = "string", says: str = "a text", pattern: str | None = None, empty: bool = False) -> FieldCodec:
    """A text, of a form where there is one."""
    compiled = re.compile(pattern) if pattern is not None else None

    def parse(value: Any) -> str:
        if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX or (not value and not empty):
            raise ValueError
        if compiled is not None and compiled.fullmatch(value) is None:
            raise ValueError
        return value

    schema: dict[str, Any] = {"type": "string"}
    schema |= {"pattern": f"^(?:{pattern})$"} if pattern is not None else {"minLength": 0 if empty else 1}
    return FieldCodec(rule, says, parse, same, schema)


def parsed_text(rule: str, says: str, parse: Callable[[str], Any], emit: Callable[[Any], str]) -> FieldCodec:
    """A text with a form of its own. `parse` raises ValueError, with a reason where it knows one."""

    def parse_text(value: Any) -> Any:
        if not isinstance(value, str) or len(value) > TEXT_CHARACTERS_MAX:
            raise ValueError
        return parse(value)

    return FieldCodec(rule, says, parse_text, emit, {"type": "string", "description": says})


def choice(rule: str, names: tuple[str, ...]) -> FieldCodec:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError
        return value

    return FieldCodec(rule, f"one of {', '.join(names)}", parse, same, {"type": "string", "enum": list(names)})


def _flag(value: Any) -> bool:
    # Some versions have written the word.
    if value in ("true", "false") and isinstance(value, str):
        return bool(value == "true")
    if not isinstance(value, bool):
        raise ValueError
    return value


FLAG = FieldCodec("boolean", "true or false", _flag, same, {"type": "boolean"})
TEXT = text()
LONG = whole_number()
INT = whole_number(maximum=INT_MAX, rule="int")


def load_json(value: str) -> Any:
    """JSON inside a text. ValueError for what is none, however it is nested."""
    try:
        return json.loads(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError("it is not JSON") from None


def number_in(value: str, minimum: int = 0, maximum: int = LONG_MAX) -> int:
    """A number written in decimal digits. ValueError for anything else, also for digits of other scripts."""
    if not re.fullmatch(r"[0-9]{1,40}", value) or not minimum <= int(value) <= maximum:
        raise ValueError(f"{value[:40]!r} is no number from {minimum} to {maximum}")
    return int(value)
