"""The rare messages, byte for byte as pgoutput's format says."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from tailrace.errors import DefiniteError
from tailrace.source.postgres.values.messages import (
    RelationColumn,
    parse_commit,
    parse_relation,
    parse_truncate,
)

POSTGRES_EPOCH_US = 946_684_800_000_000
COMMIT = b"C" + struct.pack(">BQQq", 0, 100, 150, -1)
RELATION = (
    b"R"
    + struct.pack(">I", 3_000_000_000)
    + "büro\0orders\0".encode()
    + b"d"
    + struct.pack(">H", 2)
    + (b"\1id\0" + struct.pack(">Ii", 20, -1))
    + (b"\0price\0" + struct.pack(">Ii", 1700, 786438))
)
TRUNCATE = b"T" + struct.pack(">IB2I", 2, 3, 16400, 16500)


def test_a_commit_counts_time_from_1970() -> None:
    commit = parse_commit(COMMIT)
    assert (commit.position.ordinal, commit.end_ordinal, commit.position.time_us) == (100, 150, POSTGRES_EPOCH_US - 1)


def test_a_relation_brings_its_columns_and_which_of_them_identify_a_row() -> None:
    relation = parse_relation(RELATION)
    assert (relation.oid, relation.namespace, relation.name) == (3_000_000_000, "büro", "orders")
    assert relation.replica_identity == "d"
    assert relation.columns == (RelationColumn(True, "id", 20, -1), RelationColumn(False, "price", 1700, 786438))


def test_an_empty_namespace_is_pg_catalog() -> None:
    assert parse_relation(RELATION.replace("büro".encode(), b"")).namespace == "pg_catalog"


def test_one_truncate_names_several_relations() -> None:
    truncate = parse_truncate(TRUNCATE)
    assert (truncate.relations, truncate.cascade, truncate.restart) == ((16400, 16500), True, True)


@pytest.mark.parametrize(
    ("parse", "payload"),
    [(parse_commit, COMMIT), (parse_relation, RELATION), (parse_truncate, TRUNCATE)],
)
def test_a_message_cut_short_or_too_long_is_refused(parse: Callable[[bytes], object], payload: bytes) -> None:
    for damaged in [payload[:length] for length in range(len(payload))] + [payload + b"\0"]:
        with pytest.raises(DefiniteError):
            parse(damaged)
