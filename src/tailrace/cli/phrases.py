"""Texts for people, with what they say of the kind of source: `{dsn}` becomes a connection string of that kind."""

from __future__ import annotations

from tailrace.source import kinds


def phrased(text: str) -> str:
    """The text, with the words of the first kind of source there is."""
    for words in kinds.all_words()[:1]:
        for name, phrase in words.phrases.items():
            text = text.replace(f"{{{name}}}", phrase)
    return text
