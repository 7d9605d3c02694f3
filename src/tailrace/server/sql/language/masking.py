"""A text of statements as it may be shown to anyone: nothing in it that could be a secret. Pure.

The text is wrong, or no one would show it, so what its words were meant to be is not known. Stars stand in place of

- what is in quotes or comments, names in quotes aside; those too if they are not closed or have a line's end in them;
- what follows a word such as `password`, `secret` or `key`: a value in quotes, or else the rest of the line, as a
  password that was not quoted may have anything in it;
- the value after any other `=`, and the rest of the line after `://`;
- the rest of the line where something follows a closing quote at once: a quote inside has ended the text too early.

Every other character stands where it stood.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_PIECE = re.compile(
    r"""(?P<comment>--[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)"""
    r"""|(?P<text>e'(?:[^'\\]|''|\\.)*+'?|'(?:[^']|'')*+'?)|(?P<quoted>"(?:[^"]|"")*+"?)"""
    r"""|(?P<word>[^\W\d][\w$]*+)|(?P<line>\n)|(?P<space>[^\S\n]++)|(?P<address>://)|(?P<sign>.)""",
    re.IGNORECASE | re.DOTALL,
)
_TELLS = re.compile(r"pas|pwd|psw|secret|token|key|cred|salt|auth|private|identified|dsn", re.IGNORECASE)
_SEPARATORS = (",", ")", ";")


class _State(Enum):
    """What comes next."""

    OPEN = auto()
    TOLD = auto()
    """A secret: a word has told of it."""
    ASSIGNED = auto()
    """A value: an `=` stands before it."""
    VALUE = auto()
    """More of a value that has no quotes."""
    CLOSED = auto()
    """What follows a closing quote."""
    REST = auto()
    """The rest of a line that is hidden."""


_Next = tuple[_State, bool]
"""The state after a piece, and whether the piece is hidden."""


def masked(text: str) -> str:
    """Of the same length, with the same lines."""
    shown, state, before = [], _State.OPEN, ""
    for piece in _PIECE.finditer(text):
        kind, part = piece.lastgroup or "", piece.group()
        state, is_hidden = _next(state, kind, part, before)
        shown.append(_starred(kind, part) if is_hidden else part)
        before = part
    return "".join(shown)


def is_masked(text: str, offset: int) -> bool:
    """Whether what stands there is not shown."""
    return masked(text)[offset : offset + 1] != text[offset : offset + 1]


def _next(state: _State, kind: str, part: str, before: str) -> _Next:
    if kind == "comment":
        return state, True
    if kind in ("line", "space"):
        is_over = state in (_State.CLOSED, _State.VALUE) or (state is _State.REST and kind == "line")
        return (_State.OPEN if is_over else state), False
    match state:
        case _State.OPEN:
            return _open(kind, part, before)
        case _State.TOLD:
            return _told(kind, part, before)
    return _value(state, kind, part)


def _open(kind: str, part: str, before: str) -> _Next:
    match kind:
        case "text":
            return _State.CLOSED, True
        case "quoted" if not _is_name(part):
            return _State.CLOSED, True
        case "address":
            return _State.REST, True
        case "word" if _is_name(before):
            return _State.REST, True
        case "word" | "quoted" if _TELLS.search(part):
            return _State.TOLD, False
    return (_State.ASSIGNED if part == "=" else _State.OPEN), False


def _told(kind: str, part: str, before: str) -> _Next:
    """The rest of a key, and signs between it and its value, are shown."""
    if kind in ("text", "quoted"):
        return _State.CLOSED, True
    is_key = before == "." if kind == "word" else part == "." and (before[-1:].isalnum() or before[-1:] in '_"')
    is_key = is_key or part in ("=", ":") or part.lower() == "secret"
    return (_State.TOLD, False) if is_key else (_State.REST, True)


def _value(state: _State, kind: str, part: str) -> _Next:
    """What is to be hidden whatever it is, unless it separates."""
    if state is not _State.REST and part in _SEPARATORS:
        return _State.OPEN, False
    if state is _State.ASSIGNED and kind in ("text", "quoted"):
        return _State.CLOSED, True
    return (_State.VALUE if state in (_State.ASSIGNED, _State.VALUE) else _State.REST), True


def _is_name(part: str) -> bool:
    """Whether it is a whole name in quotes."""
    return len(part) > 1 and part[0] == part[-1] == '"' and "\n" not in part


def _starred(kind: str, part: str) -> str:
    """Quotes, and what begins a comment, are shown."""
    start = {"comment": 2, "quoted": 1, "text": part.find("'") + 1}.get(kind, 0)
    stop = len(part) - 1 if kind in ("quoted", "text") and part[start:].endswith(part[start - 1]) else len(part)
    return part[:start] + re.sub(r"[^\n]", "*", part[start:stop]) + part[stop:]
