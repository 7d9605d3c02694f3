"""A process that never loads pandas."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def keep_pandas_out() -> None:
    """From now on this process finds no pandas. Arrow, with its first array, and DuckDB would load it to know its
    objects: that takes 38 MB and a third of a second, a quarter of the time that a query takes in all."""
    sys.meta_path.insert(0, _WithoutPandas())
