"""A Python prompt that a test pastes snippets into: `python -m tests.pasting`, a JSON object a line each way.

A document begins with no names of its own. A Spark that one of them starts is there for the others.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
from typing import Any


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    names: dict[str, dict[str, Any]] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        printed = io.StringIO()
        mine = names.setdefault(asked["document"], {"__name__": "__main__"})
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(asked["text"], asked["document"], "exec"), mine)
            code = 0
        except Exception:
            printed.write(traceback.format_exc())
            code = 1
        print(json.dumps({"code": code, "printed": printed.getvalue()}), file=answers, flush=True)


if __name__ == "__main__":
    main()
