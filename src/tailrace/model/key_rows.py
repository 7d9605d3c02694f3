"""Keys of some rows: what of a table has to be read from the source again.

A row for each key, a column for each column of the key. It travels in a stamp, as text.
"""

from __future__ import annotations

import base64
from typing import TypeAlias

import pyarrow as pa

KeyRows: TypeAlias = pa.Table


def with_more(keys: KeyRows | None, more: KeyRows) -> KeyRows:
    return more if keys is None else pa.concat_tables([keys, more])


def to_text(keys: KeyRows) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.schema) as writer:
        writer.write_table(keys)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode()


def from_text(text: str) -> KeyRows:
    return pa.ipc.open_stream(base64.b64decode(text)).read_all()
