"""Where Spark may work, as people write it."""

from __future__ import annotations

import re

FORMS = "local[*], local[N], spark://HOST:PORT, yarn or k8s://URL"
_HOST = r"(?:\[[0-9a-fA-F:]+\]|[^\s,:/\[\]]+):[0-9]{1,5}"
_MASTER = re.compile(
    rf"local|local\[(?:\*|[1-9][0-9]*)(?:,\s*[0-9]+)?\]|spark://{_HOST}(?:,{_HOST})*|yarn|k8s://\S+",
)


def is_master(text: str) -> bool:
    """Whether Spark would understand it. Whether anything answers there is found out at the start."""
    return _MASTER.fullmatch(text) is not None
