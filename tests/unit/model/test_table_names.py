"""Table names as a person writes them."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.table import TableId

NAMES = st.text(st.sampled_from("ab.\"'*?[]! $`/\\é"), min_size=1, max_size=6)
TABLES = st.builds(TableId, NAMES, NAMES)


@given(TABLES, TABLES)
def test_what_a_hint_has_a_person_paste_names_one_table_alone(table: TableId, other: TableId) -> None:
    (pattern,) = shlex.split(table.argument)
    assert table.matches(pattern)
    assert not other.matches(pattern) or other == table


@given(TABLES)
def test_the_text_form_is_read_back(table: TableId) -> None:
    assert TableId.parse(str(table)) == table
