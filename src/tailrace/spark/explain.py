"""Errors on their way from an executor to a person.

Spark passes on only the text of an exception raised in a task. Ours are written into that text with
their kind and hint, and read back on the driver.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.errors import DefiniteError, TailraceError

_MARK = "tailrace error "
_FOUND = re.compile(_MARK + r"(\{.*\})")


@contextmanager
def portable() -> Iterator[None]:
    """In a task: let our errors survive the way to the driver."""
    try:
        yield
    except TailraceError as error:
        fields = {"kind": type(error).__name__, "message": error.message, "hint": error.hint}
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
        raise _kind(fields["kind"])(fields["message"], fields["hint"]) from None


def _kind(name: str) -> type[TailraceError]:
    known = {kind.__name__: kind for kind in _all_kinds(TailraceError)}
    return known.get(name, DefiniteError)


def _all_kinds(kind: type[TailraceError]) -> Iterator[type[TailraceError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _all_kinds(each)
