"""Texts that no message may have: what the references of configurations led to, such as passwords and whole files.

Whoever looks a reference up hides its value here. From then on every error and every logged line of this process has
`********` in its place. Kept in memory alone, the newest up to `HIDDEN_CHARACTERS_MAX` characters.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

MASK = "********"
HIDDEN_CHARACTERS_MAX = 4 << 20
TEXT_CHARACTERS_MIN = 4
"""A value that is shorter is masked where it stands alone, and no line that is shorter is masked by itself."""
WORD_CHARACTERS_MIN = 10
"""Shorter words of a value are in too many messages that have nothing to do with it."""
NAME_BYTES_MAX = 63
"""A server repeats names that were given to it, cut to this length."""
_WORD_ENDS = re.compile(r"[\s,]+")


@dataclass(frozen=True)
class _Hidden:
    whole: re.Pattern[str]
    """Whatever the spaces and line ends in it have become."""
    parts: tuple[str, ...]
    """Its beginning, its lines and its long words, in lower case, longest first."""

    @classmethod
    def of(cls, value: str) -> _Hidden:
        joined = r"\s+".join(map(re.escape, value.split()))
        whole = joined if len(value) >= TEXT_CHARACTERS_MIN else rf"(?<!\w){joined}(?!\w)"
        lines = [value, *(line.strip() for line in value.splitlines())]
        lines = [" ".join(line.split()) for line in lines]
        words = [word for word in _WORD_ENDS.split(value) if len(word) >= WORD_CHARACTERS_MIN]
        parts = {form for text in (*lines, *words) for form in _forms(text) if len(form) >= TEXT_CHARACTERS_MIN}
        return cls(re.compile(whole, re.IGNORECASE), tuple(sorted(map(str.lower, parts), key=len, reverse=True)))


_hidden: dict[str, _Hidden] = {}
_lock = threading.Lock()


def hide(value: str, characters_max: int = HIDDEN_CHARACTERS_MAX) -> None:
    """Mask this text in every message from now on."""
    if not value.strip():
        return
    with _lock:
        # The newest comes last.
        _hidden[value] = _hidden.pop(value) if value in _hidden else _Hidden.of(value)
        while sum(map(len, _hidden)) > characters_max and len(_hidden) > 1:
            del _hidden[next(iter(_hidden))]


def forget() -> None:
    """Hide nothing of what was hidden so far."""
    with _lock:
        _hidden.clear()


def masked(text: str) -> str:
    """The text without what is hidden, and without any line or long word of it."""
    for each in tuple(_hidden.values()):
        text = each.whole.sub(MASK, text)
        lowered = text.lower()
        for part in each.parts:
            if part in lowered:
                text = re.sub(re.escape(part), MASK, text, flags=re.IGNORECASE)
                lowered = text.lower()
    return text


def masked_in(value: Any) -> Any:
    """The same for every text in lists and mappings; not for the keys of these."""
    match value:
        case str():
            return masked(value)
        case dict():
            return {key: masked_in(each) for key, each in value.items()}
        case list() | tuple():
            return [masked_in(each) for each in value]
    return value


def _forms(text: str) -> list[str]:
    """As messages may have a text: as it is, as Python or SQL quotes it, and as a server cuts it."""
    cut = text.encode(errors="surrogateescape")[:NAME_BYTES_MAX].decode(errors="ignore")
    return [text, repr(text)[1:-1], text.replace('"', '""'), cut]
