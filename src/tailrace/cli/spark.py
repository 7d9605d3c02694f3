"""Where Spark works, as a person writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.configuration.spark_master import FORMS, is_master
from tailrace.errors import DefiniteError
from tailrace.settings import SparkSettings

_SETTING = re.compile(r"(?P<key>spark\.[\w.-]+)=(?P<value>.*)", re.DOTALL)


def spark_settings(master: str, conf: Sequence[str] | None, *, ui: bool = False) -> SparkSettings:
    """A definite error for what Spark would not understand."""
    if not is_master(master):
        raise DefiniteError(f"--spark-master '{master}' is not a Spark master", f"write one of: {FORMS}")
    found = []
    for text in conf or ():
        setting = _SETTING.fullmatch(text)
        if setting is None:
            raise DefiniteError(f"--spark-conf '{text}' is no setting of Spark's", "write it as spark.KEY=VALUE")
        found.append((setting["key"], setting["value"]))
    return SparkSettings(master, tuple(found), ui)
