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
WORD_CHARACTERS_MIN = 4
"""Shorter words are in too many others. A value that is shorter is masked where it stands alone."""
NAME_BYTES_MAX = 63
"""A server repeats names that were given to it, cut to this length."""


@dataclass(frozen=True)
class _Hidden:
    whole: re.Pattern[str]
    """Whatever the spaces and line ends in it have become."""
    words: tuple[str, ...]
    """In lower case, longest first."""

    @classmethod
    def of(cls, value: str) -> _Hidden:
        words = value.split()
        joined = r"\s+".join(map(re.escape, words))
        whole = joined if len(value) >= WORD_CHARACTERS_MIN else rf"(?<!\w){joined}(?!\w)"
        pieces = {form for word in words for form in _forms(word) if len(form) >= WORD_CHARACTERS_MIN}
        return cls(re.compile(whole, re.IGNORECASE), tuple(sorted(map(str.lower, pieces), key=len, reverse=True)))


_hidden: dict[str, _Hidden] = {}
_lock = threading.Lock()


def hide(value: str) -> None:
    """Mask this text in every message from now on."""
    if not value.strip():
        return
    with _lock:
        # The newest comes last.
        _hidden[value] = _hidden.pop(value) if value in _hidden else _Hidden.of(value)
        while sum(map(len, _hidden)) > HIDDEN_CHARACTERS_MAX and len(_hidden) > 1:
            del _hidden[next(iter(_hidden))]


def forget() -> None:
    """Hide nothing of what was hidden so far."""
    with _lock:
        _hidden.clear()


def masked(text: str) -> str:
    """The text without what is hidden, and without any word of it."""
    for each in tuple(_hidden.values()):
        text = each.whole.sub(MASK, text)
        lowered = text.lower()
        for word in each.words:
            if word in lowered:
                text = re.sub(re.escape(word), MASK, text, flags=re.IGNORECASE)
                lowered = text.lower()
    return text


def masked_in(value: Any) -> Any:
    """The same for every text in lists and mappings."""
    match value:
        case str():
            return masked(value)
        case dict():
            return {masked_in(key): masked_in(each) for key, each in value.items()}
        case list() | tuple():
            return [masked_in(each) for each in value]
    return value


def _forms(word: str) -> list[str]:
    """As messages may have a word: as it is, as Python or SQL quotes it, and as a server cuts it."""
    cut = word.encode(errors="surrogateescape")[:NAME_BYTES_MAX].decode(errors="ignore")
    return [word, repr(word)[1:-1], word.replace('"', '""'), cut]
