"""What a Delta table says of its columns, as far as we understand it."""

from __future__ import annotations

import json

from tailrace.lake.delta.metadata import Metadata


def test_a_users_column_of_a_type_that_is_none_of_ours_is_known_by_its_name_alone() -> None:
    for delta in ({"type": "array", "elementType": "byte", "containsNull": True}, {"type": "struct", "fields": []}):
        fields = [{"name": "theirs", "type": delta, "nullable": True, "metadata": {}}]
        (field,) = Metadata.of({"schemaString": json.dumps({"type": "struct", "fields": fields})}).fields
        assert (field.name, field.type) == ("theirs", "string")
