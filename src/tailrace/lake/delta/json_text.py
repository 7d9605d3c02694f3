"""How a Delta table's own log writes a value, and the strings in it that are JSON themselves."""

from __future__ import annotations

import json
from typing import Any


def text_of(value: Any) -> str:
    """On one line, letters as they are. Readers in Rust, DuckDB's extension among them, take an escaped letter beyond
    U+FFFF for another one, and then pass over files that have what they look for."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
