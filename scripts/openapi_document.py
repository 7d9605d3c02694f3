"""`docs/openapi.json`, made from the server's routes: `python -m scripts.openapi_document` writes it."""

from __future__ import annotations

import json
from pathlib import Path

from tailrace.server.app import openapi_document

PATH = Path(__file__).resolve().parents[1] / "docs" / "openapi.json"


def documentation() -> str:
    return json.dumps(openapi_document(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(documentation(), encoding="utf-8")
