"""docs/types.md has the table that the rule gives."""

from __future__ import annotations

from pathlib import Path

from scripts.type_table import markdown

DOCUMENT = Path(__file__).resolve().parents[5] / "docs" / "types.md"


def test_the_table_of_types_is_the_rules_own() -> None:
    assert markdown() in DOCUMENT.read_text(encoding="utf-8"), f"put this into {DOCUMENT.name}:\n{markdown()}"
