"""What goes wrong with Spark itself, as opposed to what a task says of a table."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from tailrace.engine.door import EngineError

_REASONS = (
    # The line below a Python traceback, of the last one where errors are chained.
    re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(?P<reason>[^\s].*)"),
    re.compile(r"(?P<reason>Python worker exited unexpectedly[^\n]*)"),
    re.compile(r"(?P<reason>ExecutorLostFailure[^\n]*)"),
)


class SessionError(EngineError):
    """No Spark could be started, or it has ended."""


class JobError(Exception):
    """A task failed as often as Spark tried it, with an error that is not ours. Spark's own error is the cause."""


def is_spark_gone(error: BaseException) -> bool:
    """Whether the session itself has died or never lived."""
    if isinstance(error, EngineError | Py4JNetworkError | ConnectionError | EOFError):
        return True
    # If a connection breaks while it waits for an answer, py4j reports a failed call of one line. An answer that the
    # JVM did give has a trace below that line.
    return isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError) and "\n" not in str(error)


def reason_of(error: BaseException) -> str:
    """Why a job failed, in one line, out of the pages that Spark tells about it."""
    text = str(error)
    for pattern in _REASONS:
        found = list(pattern.finditer(text))
        if found:
            return found[-1]["reason"].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # The first line of py4j only says which method was called.
    told = next((line for line in lines if not line.startswith("An error occurred while calling")), "")
    return told.removeprefix(": ") or type(error).__name__
