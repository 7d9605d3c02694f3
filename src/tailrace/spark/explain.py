"""Errors on their way from an executor to a person.

Spark passes on only the text of an exception raised in a task. Ours are written into that text with
their kind and hint, and read back on the driver.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.errors import DefiniteError, TailraceError, TransientError

_MARK = "tailrace error "
_FOUND = re.compile(_MARK + r"(\{.*\})")


@contextmanager
def portable() -> Iterator[None]:
    """In a task: let our errors survive the way to the driver."""
    try:
        yield
    except TailraceError as error:
        fields = {"transient": isinstance(error, TransientError), "message": error.message, "hint": error.hint}
        raise RuntimeError(_MARK + json.dumps(fields)) from None


@contextmanager
def explained() -> Iterator[None]:
    """On the driver: raise what a task raised, not what Spark made of it."""
    try:
        yield
    except TailraceError:
        raise
    except Exception as error:
        found = _FOUND.search(str(error))
        if found is None:
            raise
        fields = json.loads(found.group(1))
        kind = TransientError if fields["transient"] else DefiniteError
        raise kind(fields["message"], fields["hint"]) from None
