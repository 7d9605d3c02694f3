"""The snippets of a document: what a reader would paste, and what the document shows as the answer.

A fenced block that is called `console`, `sh`, `python` or `sql` is a snippet. A comment right before it can say
how it is run:

    <!-- not run: needs a second machine -->      it is not; the reason is for people
    <!-- keeps running -->                        in the background until the document ends; what it shows is waited for
    <!-- exit code 1 -->                          of its last command; 0 otherwise
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("console", "sh", "python", "sql")
OTHERS = ("", "yaml")
"""Pictures, output, and files of other programs."""
_BLOCK = re.compile(r"((?:^<!-- .*? -->\n)*)^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\$ ((?:.*\\\n)*.*)\n?", re.MULTILINE)


@dataclass(frozen=True)
class Snippet:
    """One fenced block of a document."""

    document: Path
    line: int
    language: str
    text: str
    marks: tuple[str, ...]
    """What comments before it say."""

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"

    @property
    def why_not_run(self) -> str | None:
        return next((mark.removeprefix("not run: ") for mark in self.marks if mark.startswith("not run: ")), None)

    @property
    def keeps_running(self) -> bool:
        return "keeps running" in self.marks

    @property
    def exit_code(self) -> int:
        return next((int(mark.removeprefix("exit code ")) for mark in self.marks if mark.startswith("exit code ")), 0)

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The commands of a `console` block, each with what is shown below it; any other block is one step."""
        if self.language != "console":
            return [(self.text, "")]
        parts = _PROMPT.split(self.text)
        return list(zip(parts[1::2], parts[2::2], strict=True))


def snippets(document: Path) -> Iterator[Snippet]:
    """The blocks of a document that a reader can run, in order. AssertionError for a mark that means nothing."""
    text = document.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        comments, language, content = block.groups()
        marks = tuple(re.findall(r"<!-- (.*?) -->", comments))
        line = text.count("\n", 0, block.start(2)) + 1
        known = [mark for mark in marks if re.fullmatch(r"not run: .+|keeps running|exit code [1-9]", mark)]
        assert list(marks) == known, f"{document.name}:{line}: {marks}"
        assert language == "console" or not _PROMPT.search(content), f"{document.name}:{line}: call it console"
        assert language in (*LANGUAGES, *OTHERS), f"{document.name}:{line}: {language}"
        if language in LANGUAGES:
            yield Snippet(document, line, language, content, marks)


def shape(text: str) -> list[str]:
    """Lines without what differs from run to run: numbers, made-up names, widths, how often progress is told, and when
    Spark starts, which is told from beside."""
    words = re.sub(r"tailrace_shop_\w+", "NAME", text)
    words = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?( UTC|Z)?", "#", words)
    words = re.sub(r"\b[0-9A-F]+/[0-9A-F]+\b|\d[\d,.:]*", "#", words)
    words = re.sub(r"# ([KMG]i)?B\b", "# B", words)
    words = re.sub(r"rows copied .*", "rows copied", words)
    lines = [re.sub(r"[\s━─]+", " ", line).strip() for line in words.splitlines() if line.strip()]
    return [line for line, _ in itertools.groupby(line for line in lines if line != "· starting Spark")]


def is_like(actual: str, shown: str) -> bool:
    """Whether an answer has the shape of what a document shows. A `…` there stands for anything, on a line of its own
    for any lines."""
    lines = shape(shown)
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + "\n" for line in lines)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in shape(actual))) is not None
