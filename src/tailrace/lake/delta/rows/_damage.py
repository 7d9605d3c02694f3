"""A file of a table that is gone or not what was written: nothing is made of it, and the table is copied again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from tailrace.errors import ResyncError
from tailrace.lake.delta.file_names import last_part

_HINT = "it is copied again by a running or the next tailrace sync"


def damaged(name: str, what: str = "is damaged") -> ResyncError:
    return ResyncError(f"its file {last_part(name)} {what}", _HINT)


@contextmanager
def noticed(name: str) -> Iterator[None]:
    """Reading a file inside the `with`: a `ResyncError` if it is gone or makes no sense. A disk that fails, or too many
    open files, is another matter: those errors have a number."""
    try:
        yield
    except FileNotFoundError:
        raise damaged(name, "is gone") from None
    except pa.ArrowException as error:
        raise damaged(name) from error
    except OSError as error:
        if error.errno is None:
            raise damaged(name) from error
        raise
