"""What is in docs/examples can be read by the programs that it is for, and every file is in a document."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import yaml

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = sorted((DOCS / "examples").iterdir())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_can_be_read_and_is_in_a_document(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".py":
            assert ast.get_docstring(ast.parse(text))
        case ".json":
            json.loads(text)
        case ".yaml" | ".yml":
            yaml.safe_load(text)
        case _:
            assert path.suffix == ".service"
    assert any(f"examples/{path.name})" in each.read_text(encoding="utf-8") for each in DOCS.glob("*.md"))


@pytest.mark.parametrize("path", [each for each in EXAMPLES if each.suffix == ".py"], ids=lambda path: path.name)
def test_an_example_calls_what_is_there(path: Path) -> None:
    """Its own program may not be installed here, so what it does with ours is looked at."""
    import tailrace

    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tailrace"
    }
    assert named
    assert named <= set(tailrace.__all__)
