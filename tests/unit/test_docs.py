"""The documents say what is there: every command, option, target and link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOR_USERS = [*(ROOT / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md")), *(ROOT / "docs").glob("*.md")]
GENERATED = ROOT / "docs" / "configuration.md"
TURNED = re.compile(
    r"\b(?:so many|of which|that of|such an?|another one where|who wants|would else|without a word|has yet to"
    r"|(?:is|are) told)\b",
    re.IGNORECASE,
)


def _commands() -> dict[str, list[str]]:
    """Every command by name, `log verify` for one in a group, with its options."""
    from tailrace.cli.commands import app

    return dict(_leaves("", typer.main.get_command(app)))


def _leaves(path: str, group: Any) -> Iterator[tuple[str, list[str]]]:
    for name, command in group.commands.items():
        place = f"{path} {name}".strip()
        if hasattr(command, "commands"):
            yield from _leaves(place, command)
        else:
            names = [name for parameter in command.params for name in parameter.opts]
            yield place, [name for name in names if name.startswith("--") and name != "--help"]


def _section(document: str, heading: str) -> str:
    """The text under `## `heading ...`` up to the next heading of that level."""
    found = re.search(rf"^## `tailrace {re.escape(heading)}\b.*?(?=^## |\Z)", document, re.MULTILINE | re.DOTALL)
    return found.group(0) if found else ""


def _of_lakes(document: str) -> str:
    """What is said once for every command that takes a lake."""
    found = re.search(r"^## LAKE$.*?(?=^## )", document, re.MULTILINE | re.DOTALL)
    assert found
    return found.group(0)


def test_every_command_and_option_is_documented() -> None:
    document = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    missing = []
    for name, options in _commands().items():
        section = _section(document, name)
        section += _of_lakes(document) if section and "--storage-option" in options else ""
        missing += [name] if not section else [f"{name} {each}" for each in options if f"| `{each}" not in section]
    assert missing == []


def test_no_command_or_option_is_documented_that_does_not_exist() -> None:
    document = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    commands = _commands()
    unknown = []
    for heading in re.findall(r"^## `tailrace ([a-z -]+?)(?= [A-Z]|`)", document, re.MULTILINE):
        named = re.findall(r"^\| `(--[a-z-]+)", _section(document, heading), re.MULTILINE)
        unknown += [heading] if heading not in commands else [each for each in named if each not in commands[heading]]
    assert unknown == []


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {
        target
        for document in DOCUMENTS
        for target in re.findall(r"(?:`|^\$ |^)make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert "test" in named
    assert named <= targets


def test_every_make_target_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    silent = [line for line in makefile.splitlines() if re.match(r"^[a-z-]+:", line) and " ## " not in line]
    assert silent == []


def test_ci_runs_what_the_readme_says() -> None:
    assert "exec make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "`make test`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_sentences_for_users_are_not_turned_around() -> None:
    """These words open clauses that a reader has to read twice. What is generated says what the code says."""
    turned = [
        f"{document.name}: {text[max(0, found.start() - 40) : found.end() + 20]}"
        for document in FOR_USERS
        if document != GENERATED
        for text in [re.sub(r"\s+", " ", document.read_text(encoding="utf-8"))]
        for found in TURNED.finditer(text)
    ]
    assert turned == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8"))
    local = [link for link in links if not link.startswith(("http://", "https://"))]
    assert [link for link in local if not (document.parent / link).exists()] == []
