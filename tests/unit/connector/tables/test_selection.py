"""Tables that a disk cannot keep apart."""

from __future__ import annotations

from tailrace.connector.tables.selection import without_twins
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.door.values import SourceTable


def test_names_that_differ_only_in_case_are_refused_where_the_disk_takes_them_for_one() -> None:
    names = [TableId("public", "a"), TableId("public", "A"), TableId("Public", "b"), TableId("public", "c")]
    tables = [SourceTable(TableSchema(name, 1, (Column("id", "int", "int"),), ("id",)), 0) for name in names]
    problems = {str(each.table): each.problem for each in without_twins(tables)}
    refused = {name: problem.message for name, problem in problems.items() if problem is not None}
    assert refused.keys() == {"public.a", "public.A"}
    assert refused["public.a"].startswith("tables public.a and public.A differ only in upper and lower case")
