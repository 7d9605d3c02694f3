"""Where Spark works, as a person writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.errors import DefiniteError
from tailrace.settings import SparkSettings

_SETTING = re.compile(r"(?P<key>spark\.[\w.-]+)=(?P<value>.*)", re.DOTALL)


def spark_settings(master: str, conf: Sequence[str] | None) -> SparkSettings:
    """A definite error for what is no setting of Spark's."""
    found = []
    for text in conf or ():
        setting = _SETTING.fullmatch(text)
        if setting is None:
            raise DefiniteError(f"--spark-conf '{text}' is no setting of Spark's", "write it as spark.KEY=VALUE")
        found.append((setting["key"], setting["value"]))
    return SparkSettings(master, tuple(found))
