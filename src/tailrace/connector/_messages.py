"""What a connector tells about itself, as JSON lines in a file of the lake."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES_MAX = 8 << 20
FILES_KEPT = 3
_PLAIN = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One object a message: time, level, logger, message, and whatever structure it carries."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in record.__dict__.items() if name not in _PLAIN}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


class PrivateFiles(RotatingFileHandler):
    """Only their owner may read them."""

    def _open(self) -> TextIOWrapper:
        return open(
            self.baseFilename, "a", encoding=self.encoding, opener=lambda path, flags: os.open(path, flags, 0o600)
        )


@contextmanager
def messages_to(path: Path) -> Iterator[None]:
    """Everything that Tailrace logs inside goes to this file too. Only its owner may read it."""
    handler = PrivateFiles(path, maxBytes=FILE_BYTES_MAX, backupCount=FILES_KEPT, encoding="utf-8")
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("tailrace")
    logger.addHandler(handler)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
