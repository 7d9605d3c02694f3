"""Errors on their way from an executor to a person.

Spark passes on only the text of an exception raised in a task. Ours are written into that text with
their kind and hint, and read back on the driver.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JNetworkError

from tailrace.errors import DefiniteError, TailraceError, TransientError

_MARK = "tailrace error "
FULL = (errno.ENOSPC, errno.EDQUOT)
_FOUND = re.compile(_MARK + r"(\{.*\})")


class SessionError(DefiniteError):
    """There is no Spark to work with: no table is to blame."""


@contextmanager
def errors_sent() -> Iterator[None]:
    """In a task: let our errors survive the way to the driver."""
    try:
        yield
    except (TailraceError, OSError) as raised:
        error = raised if isinstance(raised, TailraceError) else passing(raised)
        if error is None:
            raise
        fields = {"kind": type(error).__name__, "message": error.message, "hint": error.hint, "table": error.table}
        more = {name: value for name, value in vars(error).items() if name not in fields}
        raise RuntimeError(_MARK + json.dumps({**fields, "more": more})) from None


@contextmanager
def errors_received() -> Iterator[None]:
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
        received = _kind(fields["kind"])(fields["message"], fields["hint"], fields["table"])
        vars(received).update(fields["more"])
        raise received from None


def _kind(name: str) -> type[TailraceError]:
    known = {kind.__name__: kind for kind in _all_kinds(TailraceError)}
    return known.get(name, DefiniteError)


def _all_kinds(kind: type[TailraceError]) -> Iterator[type[TailraceError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _all_kinds(each)


def is_spark_gone(error: BaseException) -> bool:
    """Whether the session itself has died or never lived: then no table is to blame."""
    return isinstance(error, SessionError | Py4JNetworkError | ConnectionError | EOFError)


def passing(error: Exception, table: str | None = None) -> TransientError | None:
    """What the machine lacks for a while, such as room on its disk, as a transient error; None for any other."""
    if isinstance(error, FileNotFoundError | ConnectionError):
        return None
    text = str(error)
    number = error.errno if isinstance(error, OSError) else None
    # Of what the JVM meets, only the text comes here.
    told = next((each for each in (errno.ENOSPC, errno.EMFILE) if os.strerror(each) in text), number)
    if told is None:
        return None
    hint = "make room on the disk: it continues by itself" if told in FULL else "it is tried again by itself"
    path = getattr(error, "filename", None)
    what = f"{os.strerror(told).lower()}{f': {path}' if path else ''}"
    return TransientError(f"{table}: {what}" if table else what, hint, table)


def unexpected(error: Exception, table: str) -> DefiniteError:
    """An unforeseen error, as an error of its table."""
    first_line = (str(error) or type(error).__name__).strip().splitlines()[0]
    hint = f"the details are in _tailrace/tailrace.log; to copy it again: tailrace tables resync LAKE {table}"
    return DefiniteError(f"{table}: unexpected: {first_line[:300]}", hint, table)
