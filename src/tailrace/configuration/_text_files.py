"""Reading a file whose contents may be secret: what goes wrong is said without any of it."""

from __future__ import annotations

from pathlib import Path

from tailrace.errors import DefiniteError


def read_text(path: Path, name: str) -> str:
    """The text; a definite error that begins with `name` for what cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "unknown").lower()
    except ValueError:
        # The text of a decoding error has bytes of the file in it.
        reason = "it is not text in UTF-8"
    raise DefiniteError(f"{name} cannot be read: {reason}")
