"""The glossary is true: its words are used, each stands once, and words of other systems are not used for ours."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MODULES = sorted((ROOT / "src").rglob("*.py"))
WORDS_MAX = 50

BEHIND = re.compile(r"\bbehind\b", re.IGNORECASE)
LATE = re.compile(
    # Late by some amount, left where something was, or out of sight.
    r"(?:far|furthest|falls|is|changes|that are) behind\b|\bbehind (?:the head|the log)\b|\?behind=true"
    r"|\b(?:leaves?|left|leave|stays)\b[^.;]*? behind\b|\bbehind (?:a proxy|the engine's door)\b|\*behind\* means",
    re.IGNORECASE,
)
WORDS_OF_OTHERS = {
    r"interfaces?": "door",
    r"plugin api": "door",
    r"backfill\w*": "snapshot, or copy",
    r"commit\w* (?:its |the |an )?offsets?": "acknowledge",
    r"change ?feeds?": "log, or stream",
    r"(?:low|high)[- ]?water ?marks?": "position",
}


def _words() -> list[str]:
    """The words in bold, without what they are of: `definition`, and both of `schema` and `shape`."""
    return [word.lower() for word in re.findall(r"\*\*([\w ]+)\*\*", GLOSSARY.read_text(encoding="utf-8"))]


def _prose(module: Path) -> str:
    """What people read in a module: comments and texts. A line break does not part two words."""
    source = module.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
    return re.sub(r"[\s#]+", " ", "\n".join(token.string for token in tokens if token.type in kinds))


def _texts() -> Iterator[tuple[str, str]]:
    """All documents but the glossary, and the prose of all modules."""
    for path in DOCUMENTS:
        if path != GLOSSARY:
            yield str(path.relative_to(ROOT)), re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
    for path in MODULES:
        yield str(path.relative_to(ROOT)), _prose(path)


TEXTS = dict(_texts())
CODE = " ".join(text for name, text in TEXTS.items() if name.endswith(".py"))
PAGES = " ".join(text for name, text in TEXTS.items() if name.endswith(".md"))


def test_every_word_stands_once_and_they_fit_in_a_head() -> None:
    words = _words()
    assert sorted(set(words)) == sorted(words)
    assert 30 < len(words) <= WORDS_MAX


@pytest.mark.parametrize("text", [CODE, PAGES], ids=["code", "documents"])
def test_every_word_is_used(text: str) -> None:
    """As it stands, or as another form of it: `publish`, `publishes`, `published`."""
    forms = {word: rf"(?<![a-z]){word}(?:s|es|d|ed|ing|r)?(?![a-z])" for word in _words()}
    assert [word for word, form in forms.items() if not re.search(form, text, re.IGNORECASE)] == []


def test_words_of_others_are_not_used_for_ours() -> None:
    used = [
        f"{name}: {match.group(0)}, which is {ours} here"
        for name, text in TEXTS.items()
        for theirs, ours in WORDS_OF_OTHERS.items()
        for match in re.finditer(rf"\b{theirs}\b", text, re.IGNORECASE)
    ]
    assert used == []


def test_behind_means_late() -> None:
    """For an order in time or space we say after and before."""
    used = [
        f"{name}: {text[max(0, match.start() - 40) : match.end() + 30]}"
        for name, text in TEXTS.items()
        for match in BEHIND.finditer(text)
        if not any(late.start() <= match.start() < late.end() for late in LATE.finditer(text))
    ]
    assert used == []
