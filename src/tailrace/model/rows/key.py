"""When two keys are one: where the source and the lake both say so.

The floats -0.0 and 0.0 are one key, and NaN is one, in Postgres and in Spark. Arrow and Python see it otherwise.

Postgres has more keys that are equal and look different, of types that are copied as text: numeric 1.0 and 1.00, an
interval of 1 day and of 24 hours, text under a collation that ignores case. They are two keys here. An update from one
to the other sends the old one along, because the server compares the stored bytes: the row moves. A delete sends the
one that was stored.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NAN = math.nan

KeyRows: TypeAlias = pa.Table
"""Keys of some rows, a row for each and a column for each column of the key: what of a table has to be read from the
source again. It travels in a stamp, as text."""


def key_of(row: Mapping[str, Any], key: Iterable[str]) -> tuple[Any, ...]:
    """The row's key as Python compares and hashes it."""
    # In a tuple one and the same NaN equals itself; two do not.
    return tuple(_NAN if isinstance(row[name], float) and math.isnan(row[name]) else row[name] for name in key)


def key_codes(key: Any) -> tuple[Any, int]:
    """A number for each row of a struct array, equal exactly where the keys are, and how many there are. Keys that are
    one whole number are numbered in their order."""
    fields = [_comparable(pc.struct_field(key, [index])) for index in range(key.type.num_fields)]
    if len(fields) == 1 and pa.types.is_integer(fields[0].type) and not fields[0].null_count:
        values, codes = np.unique(fields[0].to_numpy(), return_inverse=True)
        return codes, len(values)
    codes, count = np.zeros(len(key), np.int64), min(len(key), 1)
    for field in fields:
        encoded = field.dictionary_encode()
        part = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
        if count <= 1:
            # Numbered in the order in which they come, without gaps, but for null, which may not be there.
            codes, count = part, len(encoded.dictionary) + bool(encoded.null_count)
            continue
        # Renumbering after each column keeps the product of two counts within 64 bits.
        values, codes = np.unique(codes * (len(encoded.dictionary) + 1) + part, return_inverse=True)
        count = len(values)
    return codes, count


def differs(old: Any, new: Any) -> Any:
    """For each row of two struct arrays, whether the keys differ; a missing value differs from every other."""
    found = np.zeros(len(old), bool)
    for index in range(old.type.num_fields):
        one, other = pc.struct_field(old, [index]), pc.struct_field(new, [index])
        same = pc.equal(one, other)
        if pa.types.is_floating(one.type):
            same = pc.or_(same, pc.and_(pc.is_nan(one), pc.is_nan(other)))
        found |= ~pc.fill_null(same, False).to_numpy(zero_copy_only=False)
    return found


def _comparable(values: Any) -> Any:
    """Adding zero makes -0.0 to 0.0 and changes nothing else."""
    return pc.add(values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values


def with_more(keys: KeyRows | None, more: KeyRows) -> KeyRows:
    return more if keys is None else pa.concat_tables([keys, more])


def to_text(keys: KeyRows) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.schema) as writer:
        writer.write_table(keys)
    return base64.b64encode(sink.getvalue().to_pybytes()).decode()


def from_text(text: str) -> KeyRows:
    return pa.ipc.open_stream(base64.b64decode(text)).read_all()
