"""A lake's small files: JSON that is replaced as a whole, and files of lines that grow at their end.

A line that a crash cut short is no line to a reader, and the next one takes its place.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.files import replace, sync

LINE_BYTES_MAX = 1 << 20
"""Longer than any line that is appended."""


def write_json(path: Path, content: Any) -> None:
    """Durable when this returns. Only the owner may read it."""
    replace(path, json.dumps(content, indent=2).encode(), point="file.draft")


def read_json(path: Path) -> Any:
    """None when there is no such file. A definite error when it is damaged."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise DefiniteError(f"{path} is damaged", "restore it from a backup") from None


def append_line(path: Path, line: str) -> None:
    """Durable when this returns. Only the owner may read it. One process at a time."""
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        start = max(0, size - LINE_BYTES_MAX)
        end = start + os.pread(descriptor, size - start, start).rfind(b"\n") + 1
        os.ftruncate(descriptor, end)
        content = f"{line}\n".encode()
        if os.pwrite(descriptor, content, end) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        sync(path.parent)
