"""What a connector tells about itself, as JSON lines in a file of the lake.

Several connectors may run in one process: each file gets what the threads of its own connector say, and what is said by
threads that belong to none.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, TypeVar

from tailrace.hidden import masked_in

T = TypeVar("T")
FILE_BYTES_MAX = 8 << 20
FILES_KEPT = 3
_owner: ContextVar[Path | None] = ContextVar("owner", default=None)
"""Whose thread this is: the file of its connector's messages."""
_QUOTED = re.compile(r"'.*'", re.DOTALL)
_CAUSE = re.compile(r"^[\w.]+: .*?(?=^Traceback|^$|\Z)", re.MULTILINE | re.DOTALL)
"""The lines of a traceback that say what was raised."""
_PLAIN = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One object a message: time in UTC, level, logger, message, and whatever structure it carries. Errors quote values
    of rows, `'…'`, for the person whose rows they are; files that others read have none of them."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in record.__dict__.items() if name not in _PLAIN}
        if record.exc_info:
            fields["traceback"] = _CAUSE.sub(_without_values, self.formatException(record.exc_info))
        return json.dumps(masked_in(_without_quotes("", fields)), default=str)


def _without_quotes(name: str, value: Any) -> Any:
    """What quotes a value is always the reason for something."""
    match value:
        case dict():
            return {each: _without_quotes(each, inner) for each, inner in value.items()}
        case str() if name == "reason":
            return _QUOTED.sub("'…'", value)
    return value


def _without_values(cause: re.Match[str]) -> str:
    return _QUOTED.sub("'…'", cause.group())


class PrivateFiles(RotatingFileHandler):
    """Only their owner may read them. Each is opened with its first message; what cannot be written is left out."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        """A file that cannot be written, on a disk that is full, is no reason to write on the terminal."""

    def _open(self) -> TextIOWrapper:
        return open(
            self.baseFilename, "a", encoding=self.encoding, opener=lambda path, flags: os.open(path, flags, 0o600)
        )


@contextmanager
def messages_to(path: Path, file_bytes_max: int = FILE_BYTES_MAX) -> Iterator[None]:
    """What the connector's threads log inside goes to this file too, and what threads of none do. Only its owner may
    read it."""
    handler = PrivateFiles(path, maxBytes=file_bytes_max, backupCount=FILES_KEPT, encoding="utf-8", delay=True)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda _: _owner.get() in (None, path))
    logger = logging.getLogger("tailrace")
    logger.addHandler(handler)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


def own(path: Path) -> None:
    """From now on this thread belongs to the connector with this file."""
    _owner.set(path)


@contextmanager
def owning(path: Path) -> Iterator[None]:
    """The same until the `with` ends."""
    token = _owner.set(path)
    try:
        yield
    finally:
        _owner.reset(token)


def owned(work: Callable[[], T]) -> Callable[[], T]:
    """The work, for another thread of the connector whose thread this is."""
    return partial(copy_context().run, work)


def beside(work: Callable[[], T]) -> Future[T]:
    """The work, in a thread of its own of this connector. A process that is to end does not wait for it: a lock at the
    source may hold it up for as long as another process likes."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=owned(run), name="beside", daemon=True).start()
    return future


def join_owner() -> Callable[[], None]:
    """What each thread of a pool does first, to be one of the connector whose thread this is."""
    owner = _owner.get()

    def join() -> None:
        _owner.set(owner)

    return join
