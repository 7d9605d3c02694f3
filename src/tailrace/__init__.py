"""Tailrace: change data capture straight into Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tailrace.connector.live import Cut as Cut
    from tailrace.connector.live import cut as cut
    from tailrace.spark.datasource import register as register

__all__ = ["Cut", "cut", "register"]


def __getattr__(name: str) -> Any:
    """Spark is loaded when it is first asked for: capture runs without it."""
    if name in ("Cut", "cut"):
        from tailrace.connector import live

        return getattr(live, name)
    if name == "register":
        from tailrace.spark.datasource import register

        return register
    raise AttributeError(f"module 'tailrace' has no attribute {name!r}")
