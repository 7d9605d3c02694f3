"""Tailrace: change data capture straight into Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailrace.connector.signals.sender import signal as signal
    from tailrace.engine.spark.session import spark_session as spark_session
    from tailrace.read.cut import Cut as Cut
    from tailrace.read.cut import arrow as arrow
    from tailrace.read.cut import cut as cut
    from tailrace.read.datasource import register as register

__all__ = ["Cut", "arrow", "cut", "register", "signal", "spark_session"]


def __getattr__(name: str) -> Any:
    """Spark is loaded when it is first asked for: capture and DuckDB run without it."""
    if name in ("Cut", "arrow", "cut"):
        from tailrace.read import cut as module

        return getattr(module, name)
    if name == "register":
        from tailrace.read.datasource import register

        return register
    if name == "spark_session":
        from tailrace.engine.spark.session import spark_session

        return spark_session
    if name == "signal":
        from tailrace.connector.signals.sender import signal

        return signal
    raise AttributeError(f"module 'tailrace' has no attribute {name!r}")
