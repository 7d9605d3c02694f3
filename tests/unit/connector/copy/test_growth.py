"""How far a copy is, carried by stamps."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa

from tailrace.connector.copy.growth import AGAIN_ROWS_MAX, Growth
from tailrace.model.table import TableId


def test_the_last_and_the_longest_time_that_a_state_was_held_are_kept() -> None:
    growth = Growth(["9"])
    for done, held in (("3", 0.5), ("6", 2.25), ("9", 1.0)):
        growth = growth.with_window([done], 3, held)
    assert (growth.held_seconds, growth.held_seconds_max) == (1.0, 2.25)
    assert (growth.rows, growth.windows, growth.is_whole) == (9, 3, True)


def test_a_growth_is_the_same_after_it_was_stored_and_one_of_an_earlier_state_can_be_read() -> None:
    growth = Growth(("9",), order=("n",), condition="true").with_window(("3",), 3, 0.125)
    growth = growth.with_again(pa.table({"id": [7]}))
    stored = json.loads(json.dumps(growth.to_json()))
    assert Growth.from_json(stored) == growth
    del stored["held"]
    assert Growth.from_json(stored).held_seconds_max == 0.0


def test_keys_that_must_be_read_again_are_taken_a_portion_at_a_time_until_none_is_left() -> None:
    keys = 2 * AGAIN_ROWS_MAX + 5
    growth = Growth(["9"]).with_again(pa.table({"id": range(keys)}))
    found: list[int] = []
    while (portion := growth.again_next) is not None:
        assert portion.num_rows <= AGAIN_ROWS_MAX
        found += portion.column("id").to_pylist()
        growth = growth.without_again(portion)
    assert found == list(range(keys))


def test_how_far_a_copy_is_can_be_told_from_its_stamp_alone() -> None:
    growth = replace(Growth(["9"], rows_estimated=4000).with_window(["3"], 1000, 0.5, 4), seconds=2.0)
    found = Growth.from_json(json.loads(json.dumps(growth.to_json()))).progress(TableId("shop", "orders"))
    assert (found.rows_done, found.rows_estimated, found.chunks_done, found.chunks) == (1000, 4000, 4, 16)
    assert (found.percent, found.rows_per_second, found.seconds_left) == (25.0, 500.0, 6.0)
    early = Growth(["9"]).progress(TableId("shop", "orders"))
    assert (early.percent, early.rows_per_second, early.seconds_left) == (0.0, 0.0, None)
