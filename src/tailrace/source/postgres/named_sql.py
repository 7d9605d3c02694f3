"""Named SQL: each `.sql` file of a folder here holds queries headed by `-- name: purpose`.

A query that begins with the line `with tree` begins with the query of that name.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import LiteralString, cast

NAMESPACES_SINCE = 150000
"""The server's version from which on a publication may send all tables of a namespace."""

_HEADING = re.compile(r"^-- (\w+): .*$", re.MULTILINE)


def load(file_name: str) -> dict[str, LiteralString]:
    """The file's queries by name."""
    _, _, tree = _HEADING.split(_read("tree.sql"))
    _, *parts = _HEADING.split(_read(file_name).replace("\nwith tree\n", tree))
    # The text ships with the package, so it is as trusted as a literal.
    return {name: cast(LiteralString, body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _read(file_name: str) -> str:
    return (files(__package__) / file_name).read_text(encoding="utf-8")
