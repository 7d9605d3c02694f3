"""The document has every property, and is made from them."""

from __future__ import annotations

from scripts.configuration_document import PATH, documentation

from tailrace.configuration.properties import all_properties


def test_the_document_is_the_one_that_is_made() -> None:
    """`python -m scripts.configuration_document` writes it."""
    assert PATH.read_text(encoding="utf-8") == documentation()


def test_the_document_has_every_property_once_with_its_verdict() -> None:
    lines = documentation().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    for each in all_properties():
        (row,) = [row for row in rows if row.startswith(f"| `{each.name}` |")]
        assert f"| {each.verdict}" in row
