"""A file of a table that is gone or not what was written: nothing is made of it, and the table is copied again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from tailrace.errors import ResyncError

_HINT = "it is copied again by a running or the next tailrace sync"


def damaged(path: Path, what: str = "is damaged") -> ResyncError:
    return ResyncError(f"its file {path.name} {what}", _HINT)


@contextmanager
def noticed(path: Path) -> Iterator[None]:
    """Reading a file inside the `with`: a `ResyncError` if it is gone or makes no sense. A disk that fails, or too many
    open files, is another matter: those errors have a number."""
    try:
        yield
    except FileNotFoundError:
        raise damaged(path, "is gone") from None
    except pa.ArrowException as error:
        raise damaged(path) from error
    except OSError as error:
        if error.errno is None:
            raise damaged(path) from error
        raise
