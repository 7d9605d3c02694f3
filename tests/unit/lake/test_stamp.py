"""What a version carries of its place in the source's history."""

from __future__ import annotations

import json

from tailrace.lake.stamp import Stamp
from tailrace.model.position import SourcePosition

WHOLE = Stamp(SourcePosition(10, 5), 7, 1, 3)


def test_a_cursor_comes_back_and_is_not_written_where_there_is_none() -> None:
    growing = Stamp(WHOLE.position, 7, 1, 3, {"upto": ["1.00", "ä"], "again": []})
    assert Stamp.from_json(growing.to_json()) == growing
    assert Stamp.from_json(WHOLE.to_json()) == WHOLE
    assert set(json.loads(WHOLE.to_json())["tailrace"]) == {"position", "relation", "copy", "seq"}
