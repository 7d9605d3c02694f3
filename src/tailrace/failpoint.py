"""Named points at which a test can kill the process, as a power cut would.

TAILRACE_FAILPOINT=publish.table:2 kills this process with SIGKILL the second time it gets there.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

_hits: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Die here if the environment asks for it."""
    wanted, _, count = os.environ.get("TAILRACE_FAILPOINT", "").partition(":")
    if wanted != name:
        return
    _hits[name] += 1
    if _hits[name] == int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
