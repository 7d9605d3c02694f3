"""One part of a version of a table that does not have all its rows yet. Its base cannot be proven, but for one thing:
no key is there twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tailrace.lake.delta.rows.locator import Places
from tailrace.lake.delta.rows.part import StatesWriter, drifted
from tailrace.lake.growing_states import fitting


@dataclass(frozen=True)
class GrowingWriter(StatesWriter):
    """Writes states over a base that may have their keys or not."""

    tells_all: bool = False

    def _fitting(self, states: pa.Table, places: Places) -> tuple[pa.Table, pa.Table | None]:
        counts = places.counts(states.num_rows)
        if (counts > 1).any():
            raise drifted(self.schema, states, {"is there more than once": counts > 1})
        return fitting(states, self.schema.key, counts > 0, self._are_there, tells_all=self.tells_all)

    def _are_there(self, keys: pa.Table) -> np.ndarray:
        return self._find(keys, self.schema.key).counts(keys.num_rows) > 0
