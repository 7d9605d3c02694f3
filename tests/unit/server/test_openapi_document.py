"""The OpenAPI document reads well in a generated client, and docs/openapi.json is it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from scripts.openapi_document import PATH, documentation

from tailrace.server.app import openapi_document


def operations() -> dict[str, dict[str, Any]]:
    return {
        f"{method} {path}": operation
        for path, methods in openapi_document()["paths"].items()
        for method, operation in methods.items()
    }


def test_every_operation_has_a_name_of_its_own_that_a_program_would_give_it() -> None:
    names = {route: operation["operationId"] for route, operation in operations().items()}
    assert {name: count for name, count in Counter(names.values()).items() if count > 1} == {}
    assert {route: name for route, name in names.items() if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", name)} == {}
    known = {
        "get /connectors": "listConnectors",
        "post /connectors": "createConnector",
        "put /connectors/{name}/pause": "pauseConnector",
        "patch /connectors/{name}/offsets": "alterOffsets",
        "get /connectors/{name}/cuts/newest": "getNewestCut",
    }
    assert known.items() <= names.items()


def test_every_operation_says_what_it_does() -> None:
    assert [route for route, operation in operations().items() if not operation.get("description")] == []


def test_the_document_is_the_one_in_the_docs() -> None:
    """`python -m scripts.openapi_document` writes it."""
    is_the_one = PATH.read_text(encoding="utf-8") == documentation()
    assert is_the_one, "a route has changed: python -m scripts.openapi_document"
