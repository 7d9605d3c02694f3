"""When two keys are one: where the source and the lake both say so.

The floats -0.0 and 0.0 are one key, and NaN is one, in Postgres and in Spark. Arrow and Python see it otherwise.

Postgres has more keys that are equal and look different, of types that are copied as text: numeric 1.0 and 1.00, an
interval of 1 day and of 24 hours, text under a collation that ignores case. They are two keys here. An update from one
to the other sends the old one along, because the server compares the stored bytes: the row moves. A delete sends the
one that was stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NAN = math.nan


def key_of(row: Mapping[str, Any], key: Iterable[str]) -> tuple[Any, ...]:
    """The row's key as Python compares and hashes it."""
    # In a tuple one and the same NaN equals itself; two do not.
    return tuple(_NAN if isinstance(row[name], float) and math.isnan(row[name]) else row[name] for name in key)


def key_codes(key: Any) -> tuple[Any, int]:
    """A number for each row of a struct array, equal exactly where the keys are, and how many there are."""
    codes = np.zeros(len(key), np.int64)
    for index in range(key.type.num_fields):
        field = _comparable(pc.struct_field(key, [index])).dictionary_encode()
        part = field.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        # Renumbering after each column keeps the product of two counts within 64 bits.
        codes = np.unique(codes * (len(field.dictionary) + 1) + part, return_inverse=True)[1]
    return codes, int(codes.max()) + 1 if len(codes) else 0


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
