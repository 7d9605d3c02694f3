"""Which shape a record has: one rule, by transaction, against an oracle that walks the records one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailrace.changes.shape import version_of
from tailrace.log.schema_versions import SchemaVersion
from tailrace.model.table import Column, TableId, TableSchema

T = TableId("public", "t")


def schema(name: str) -> TableSchema:
    return TableSchema(T, 7, (Column("id", "int", "integer", 1), Column(name, "int", "integer", 2)), ("id",))


steps = st.lists(
    st.tuples(st.sampled_from(["begin", "shape", "change", "commit"]), st.integers(1, 3)), min_size=1, max_size=40
)


def walk(plan: list[tuple[str, int]]) -> tuple[list[SchemaVersion], list[tuple[int, int, int]]]:
    """Interleaved transactions: the versions as the log lists them, and (xid, position, expected index) of each
    change of a transaction that commits. Position 0 announces a shape for all."""
    names = iter(f"c{number}" for number in range(1000))
    announced: list[tuple[int, int, TableSchema]] = [(0, 0, schema(next(names)))]
    since = {0: 0}
    in_force = 0
    own: dict[int, int] = {}
    active: dict[int, list[tuple[int, int]]] = {}
    changes: list[tuple[int, int, int]] = []
    for position, (what, xid) in enumerate([*plan, *(("commit", xid) for xid in (1, 2, 3))], start=1):
        if what == "begin" and xid not in active:
            active[xid] = []
        elif xid not in active:
            continue
        elif what == "shape":
            announced.append((position, xid, schema(next(names))))
            own[xid] = len(announced) - 1
        elif what == "change":
            active[xid].append((position, own.get(xid, in_force)))
        elif what == "commit":
            changes += [(xid, at, index) for at, index in active.pop(xid)]
            for index, (_, by, _) in enumerate(announced):
                if by == xid and index not in since:
                    since[index] = position
            in_force = own.pop(xid, in_force)
    versions = [
        SchemaVersion(at, 7, xid, shape, since[index])
        for index, (at, xid, shape) in enumerate(announced)
        if index in since
    ]
    return versions, changes


@given(steps)
def test_a_change_has_its_own_transaction_s_shape_or_the_newest_committed_one(plan: list[tuple[str, int]]) -> None:
    versions, changes = walk(plan)
    if not changes:
        return
    xid, position, expected = (np.array(column) for column in zip(*changes, strict=True))
    found = version_of(versions, xid.astype(np.uint64), position)
    assert [versions[i].position for i in found] == [versions[i].position for i in expected]


def test_a_record_before_every_shape_has_none() -> None:
    late = SchemaVersion(5, 7, 0, schema("a"), 5)
    found = version_of([late], np.array([1], np.uint64), np.array([4]))
    assert found.tolist() == [-1]
