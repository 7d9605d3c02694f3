"""The door to Postgres, call by call, on real servers: what it chooses, refuses, makes and removes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import psycopg
import pytest

from tailrace.errors import DefiniteError, GapError
from tailrace.model.position import START
from tailrace.model.table import TableId
from tailrace.source.door.values import SourceTable
from tailrace.source.kinds import load, path_of, source_of
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.source import PostgresSource
from tailrace.source.postgres.stream.slot import require_continuity

T, U = TableId("public", "t"), TableId("public", "u")
TWO_TABLES = "create table t (id int primary key, n int); create table u (id int primary key, n int)"


@pytest.fixture
def role(conn: psycopg.Connection) -> Iterator[str]:
    """A role that may connect, replicate and create a publication, and owns nothing."""
    name = f"limited_{conn.info.dbname}"
    conn.execute(f"create role {name} login replication; grant create on database {conn.info.dbname} to {name}")
    yield name
    conn.execute(f"drop owned by {name}; drop role {name}")


@pytest.fixture
def limited(dsn: str, role: str) -> PostgresSource:
    return PostgresSource(dsn.replace("postgres@", f"{role}@"))


def table(source: PostgresSource, name: str = "t") -> SourceTable:
    (found,) = source.tables([name], [])
    return found


def problem_of(found: SourceTable) -> str | None:
    return found.problem and found.problem.message


def publications(conn: psycopg.Connection) -> dict[str, list[str]]:
    rows = conn.execute("select pubname, array_agg(tablename::text order by 1) from pg_publication_tables group by 1")
    return dict(rows.fetchall())


def slots(conn: psycopg.Connection) -> list[str]:
    rows = conn.execute("select slot_name from pg_replication_slots where database = current_database()")
    return [name for (name,) in rows]


def test_a_source_is_the_same_wherever_it_is_made_from_its_arguments(source: PostgresSource, dsn: str) -> None:
    identity = source.identify()
    assert (identity["source"], identity["database"]) == ("postgres", dsn.rsplit("/", 1)[1])
    source.now()
    for copy in (
        source_of(dsn),
        load(path_of(source))(**source.arguments),  # type: ignore[call-arg]
        pickle.loads(pickle.dumps(source)),
    ):
        assert copy.identify() == identity
        assert copy.arguments == source.arguments
    with_names = PostgresSource(dsn, "my_slot", "my_publication")
    assert pickle.loads(pickle.dumps(with_names)).arguments == with_names.arguments


def test_another_database_of_the_server_is_another_source(source: PostgresSource, dsn: str) -> None:
    other = PostgresSource(dsn.rsplit("/", 1)[0] + "/postgres").identify()
    mine = source.identify()
    assert other["system_identifier"] == mine["system_identifier"]
    assert other != mine


def test_a_user_who_may_not_replicate_is_told_before_anything_is_made(
    conn: psycopg.Connection, limited: PostgresSource, role: str
) -> None:
    conn.execute(f"alter role {role} noreplication")
    with pytest.raises(DefiniteError, match="lacks the REPLICATION privilege") as caught:
        limited.identify()
    conn.execute(caught.value.hint or "")
    assert limited.identify()


def test_a_claim_is_chosen_once_and_checked_afterwards(source: PostgresSource, dsn: str) -> None:
    claim = source.claim(None)
    assert claim["slot"].startswith(f"tailrace_{dsn.rsplit('/', 1)[1]}_")
    assert claim["owns_slot"]
    assert claim["owns_publication"]
    assert source.claim(None)["slot"] != claim["slot"]
    assert source.claim(claim) == claim
    assert PostgresSource(dsn, slot=claim["slot"]).claim(claim) == claim
    with pytest.raises(DefiniteError, match=f"this lake uses slot {claim['slot']}, not mine") as caught:
        PostgresSource(dsn, slot="mine").claim(claim)
    assert caught.value.hint == "leave out --slot"
    with pytest.raises(DefiniteError, match="not theirs"):
        PostgresSource(dsn, publication="theirs").claim(claim)
    with pytest.raises(GapError, match="is on timeline 1, not 7"):
        source.require_continuity({**claim, "timeline": 7}, START)
    assert source.require_continuity({**claim, "timeline": 7}, None) == claim


def test_what_a_person_names_must_be_usable_before_a_lake_is_bound_to_it(conn: psycopg.Connection, dsn: str) -> None:
    with pytest.raises(DefiniteError, match="publication theirs does not exist"):
        PostgresSource(dsn, publication="theirs").claim(None)
    with pytest.raises(DefiniteError, match="cannot be a slot's name"):
        PostgresSource(dsn, slot="Not A Slot").claim(None)
    name = f"physical_{conn.info.dbname}"
    conn.execute("select pg_create_physical_replication_slot(%s)", [name])
    with pytest.raises(DefiniteError, match="is a physical slot"):
        PostgresSource(dsn, slot=name).claim(None)
    conn.execute("select pg_drop_replication_slot(%s)", [name])
    conn.execute("create table t (id int primary key); create publication inserts for table t")
    claim = PostgresSource(dsn, "mine", "inserts").claim(None)
    assert (claim["slot"], claim["owns_slot"], claim["owns_publication"]) == ("mine", False, False)
    conn.execute("alter publication inserts set (publish = insert)")
    with pytest.raises(DefiniteError, match="does not publish every kind of change"):
        PostgresSource(dsn, publication="inserts").claim(None)


def test_a_table_that_cannot_be_copied_exactly_is_named_and_the_others_are_not(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute(
        """create table t (id int primary key); create table keyless (id int);
        create table twin (id int primary key); create table "Twin" (id int primary key);
        create schema "a.b"; create table "a.b".dotted (id int primary key)"""
    )
    found = {each.table.name: each for each in source.tables([], [])}
    assert problem_of(found.pop("t")) is None
    assert problem_of(found.pop("dotted")) is None
    assert problem_of(found["keyless"]) == "table public.keyless has no primary key"
    assert found["keyless"].problem is not None
    assert [problem_of(found[twin]) for twin in ("twin", "Twin")] == [None, None]
    assert {each.table.name: problem_of(each) for each in source.tables(["twin"], [])} == {"twin": None}
    with pytest.raises(DefiniteError, match="no table matches 'tt'"):
        source.tables(["tt"], [])
    with pytest.raises(DefiniteError, match="every table is excluded"):
        source.tables([], ["*"])


def test_a_missing_privilege_is_the_table_s_problem_and_its_hint_cures_it(
    conn: psycopg.Connection, limited: PostgresSource, role: str
) -> None:
    conn.execute(f"{TWO_TABLES}; create schema shop; create table shop.orders (id int primary key)")
    conn.execute(f"grant select on u to {role}")
    found = {each.table: each.problem for each in limited.tables([], [])}
    assert found.pop(U) is None
    assert {table.name: problem and problem.message for table, problem in found.items()} == {
        "t": f"user {role} may not read table public.t",
        "orders": f"user {role} may not read table shop.orders",
    }
    for problem in found.values():
        conn.execute(problem.hint if problem else "")
    assert [problem_of(each) for each in limited.tables([], [])] == [None] * 3


def test_a_partition_that_may_not_be_read_is_its_table_s_problem(
    conn: psycopg.Connection, limited: PostgresSource, role: str
) -> None:
    conn.execute(
        f"""create table t (id int primary key) partition by range (id);
        create table leaf partition of t for values from (1) to (9); grant select on t to {role}"""
    )
    problem = table(limited).problem
    assert problem is not None
    assert problem.hint == f'grant select on "public"."leaf" to "{role}";'
    conn.execute(problem.hint)
    assert table(limited).problem is None


def test_row_security_that_hides_rows_is_the_table_s_problem(
    conn: psycopg.Connection, source: PostgresSource, limited: PostgresSource, role: str
) -> None:
    conn.execute(f"create table t (id int primary key); grant select on t to {role}")
    conn.execute("alter table t enable row level security; create policy odd on t using (id % 2 = 1)")
    assert table(source).problem is None
    problem = table(limited).problem
    assert problem is not None
    assert problem.message == f"row-level security hides rows of table public.t from user {role}"
    conn.execute(problem.hint)
    assert table(limited).problem is None


def test_a_described_table_that_is_gone_is_missing(conn: psycopg.Connection, source: PostgresSource) -> None:
    conn.execute(TWO_TABLES)
    view = TableId("public", "a_view")
    conn.execute("create view a_view as table t; insert into t select generate_series(1, 100); analyze t")
    described = source.describe([T, TableId("public", "gone"), view])
    assert list(described) == [T]
    assert described[T].schema == table(source).schema
    assert described[T].rows_estimated == 100
    assert source.describe([]) == {}
    conn.execute("alter table u set unlogged")
    assert "unlogged" in (problem_of(source.describe([U])[U]) or "")


def test_prepare_makes_what_is_missing_and_nothing_twice(conn: psycopg.Connection, source: PostgresSource) -> None:
    conn.execute(TWO_TABLES)
    claim = source.claim(None)
    first = source.prepare(claim, [T], None)
    assert first.done[0] == f"publication {claim['publication']} sends 1 table"
    assert first.done[1].startswith(f"slot {claim['slot']} holds the WAL from ")
    assert (publications(conn), slots(conn)) == ({claim["publication"]: ["t"]}, [claim["slot"]])
    assert source.prepare(claim, [T], None).done == []
    second = source.prepare(claim, [T, U, TableId("public", "gone")], source.now())
    assert second.done == [f"publication {claim['publication']} sends 1 table more, 2 in all"]
    assert {table.name: problem.message for table, problem in second.refused.items()} == {
        "gone": "table public.gone is gone"
    }
    assert publications(conn) == {claim["publication"]: ["t", "u"]}
    assert source.drop(claim) == [f"slot {claim['slot']} dropped", f"publication {claim['publication']} dropped"]
    assert source.drop(claim) == [
        f"slot {claim['slot']} was not there",
        f"publication {claim['publication']} was not there",
    ]
    assert (publications(conn), slots(conn)) == ({}, [])


def test_after_a_gap_the_slot_is_made_again_once(conn: psycopg.Connection, source: PostgresSource) -> None:
    conn.execute(TWO_TABLES)
    claim, gap = source.claim(None), source.now()
    source.prepare(claim, [T], None)
    claim = {**claim, "gap_from": gap.ordinal}
    made = f"slot {claim['slot']} holds the WAL from "
    first, second = source.prepare(claim, [T], gap).done
    assert (first, second[: len(made)]) == (f"slot {claim['slot']}, which had lost changes, dropped", made)
    assert source.prepare(claim, [T], gap).done == [], (
        "the log may still end at the gap when tables are looked at again"
    )


def test_what_others_have_sent_stays_sent_where_it_is_to_be_kept(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute(TWO_TABLES)
    claim = source.claim(None)
    source.prepare(claim, [T], None)
    kept = source.prepare(claim, [U], source.now(), keeps_others=True)
    assert kept.done == [f"publication {claim['publication']} sends 1 table more, 2 in all"]
    assert publications(conn) == {claim["publication"]: ["t", "u"]}
    if conn.info.server_version >= 180000:
        query = "select pubgencols from pg_publication"
        source.prepare(claim, [T, U], source.now())
        generated = PostgresSource(**{**source.arguments, "generated": True})
        generated.prepare(claim, [T, U], source.now())
        source.prepare(claim, [T, U], source.now(), keeps_others=True)
        assert conn.execute(query).fetchone() == ("s",)
    assert (
        source.prepare(claim, [U], source.now()).done[0]
        == f"publication {claim['publication']} no longer sends 1 table"
    )
    assert publications(conn) == {claim["publication"]: ["u"]}


def test_without_tables_there_is_still_a_publication_to_stream_from(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute(TWO_TABLES)
    claim = source.claim(None)
    source.prepare(claim, [], None)
    assert conn.execute("select pubname from pg_publication").fetchall() == [(claim["publication"],)]
    source.prepare(claim, [T], None)
    assert publications(conn) == {claim["publication"]: ["t"]}


def test_tables_of_others_are_refused_and_the_rest_is_published(
    conn: psycopg.Connection, limited: PostgresSource, role: str
) -> None:
    conn.execute(f"{TWO_TABLES}; alter table u owner to {role}")
    claim = limited.claim(None)
    with pytest.raises(DefiniteError, match=f"user {role} cannot publish the tables") as caught:
        limited.prepare(claim, [T], None)
    assert "create publication" in (caught.value.hint or "")
    prepared = limited.prepare(claim, [T, U], None)
    assert {table: problem.message for table, problem in prepared.refused.items()} == {
        T: f"user {role} does not own table public.t and cannot publish it"
    }
    assert publications(conn) == {claim["publication"]: ["u"]}
    assert list(limited.prepare(claim, [T, U], None).refused) == [T]
    conn.execute(f"alter table t owner to {role}")
    assert limited.prepare(claim, [T, U], None).refused == {}
    assert publications(conn) == {claim["publication"]: ["t", "u"]}


def test_a_publication_that_is_not_ours_is_left_as_it_is_and_what_it_lacks_is_refused(
    conn: psycopg.Connection, dsn: str
) -> None:
    conn.execute(f"{TWO_TABLES}; create table some_rows (id int primary key); create table some_columns (like t)")
    conn.execute("alter table some_columns add primary key (id)")
    conn.execute(
        "create publication theirs for table t, some_rows where (id > 1), some_columns (id) "
        "with (publish_via_partition_root = true)"
    )
    before = publications(conn)
    source = PostgresSource(dsn, publication="theirs")
    claim = source.claim(None)
    names = [T, U, TableId("public", "some_rows"), TableId("public", "some_columns")]
    assert source.unsent(claim, names) == {U}
    prepared = source.prepare(claim, names, None)
    assert {table.name: problem.message for table, problem in prepared.refused.items()} == {
        "u": "publication theirs does not send table public.u"
    }
    parts = source.describe(names[2:]).values()
    assert [(each.schema.names, each.detail.condition) for each in parts] == [(("id",), None), (("id",), "(id > 1)")]
    assert publications(conn) == before
    for problem in prepared.refused.values():
        conn.execute(problem.hint)
    assert source.prepare(claim, names, None).refused == {}
    assert source.unsent(claim, names) == set()
    assert source.drop(claim)[1] == "publication theirs is not ours: left alone"
    assert "theirs" in publications(conn)


def test_a_table_that_is_taken_out_of_the_publication_is_unsent(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute(TWO_TABLES)
    claim = source.claim(None)
    assert source.unsent(claim, [T, U]) == {T, U}
    source.prepare(claim, [T, U], None)
    assert source.unsent(claim, [T, U]) == set()
    conn.execute(f"alter publication {claim['publication']} drop table u")
    assert source.unsent(claim, [T, U]) == {U}
    source.prepare(claim, [T, U], None)
    conn.execute(f"alter publication {claim['publication']} set table t where (id > 1), u")
    assert source.unsent(claim, [T, U]) == {T}
    assert list(source.prepare(claim, [T, U], None).refused) == [T]


def test_a_table_that_is_not_wanted_any_more_leaves_our_publication_so_that_it_can_be_updated(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute(TWO_TABLES)
    claim = source.claim(None)
    source.prepare(claim, [T, U], None)
    conn.execute("alter table u replica identity nothing; insert into u values (1)")
    assert problem_of(table(source, "u")) == "table public.u has no replica identity"
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        conn.execute("update u set n = 2")
    prepared = source.prepare(claim, [T], None)
    assert prepared.done == [f"publication {claim['publication']} no longer sends 1 table"]
    assert publications(conn) == {claim["publication"]: ["t"]}
    conn.execute("update u set n = 2")
    assert source.prepare(claim, [], None).done == [f"publication {claim['publication']} no longer sends 1 table"]
    assert source.prepare(claim, [T], None).done == [f"publication {claim['publication']} sends 1 table"]


def test_a_partitioned_table_that_is_sent_as_its_partitions_is_these_tables(
    conn: psycopg.Connection, source: PostgresSource, dsn: str
) -> None:
    conn.execute("create table t (id int primary key) partition by range (id)")
    conn.execute("create table leaf partition of t for values from (1) to (9)")
    claim = source.claim(None)
    source.prepare(claim, [T], None)
    assert source.unsent(claim, [T]) == set()
    conn.execute(f"alter publication {claim['publication']} set (publish_via_partition_root = false)")
    assert source.unsent(claim, [T]) == {T}
    theirs = PostgresSource(dsn, publication=claim["publication"])
    assert [str(each.table) for each in theirs.tables([], [])] == ["public.leaf"]
    assert theirs.unsent({**claim, "owns_publication": False}, [TableId("public", "leaf")]) == set()
    with pytest.raises(DefiniteError, match="no table matches 't'") as raised:
        theirs.tables(["t"], [])
    assert raised.value.hint == "public.t is sent as its partitions, which are copied as tables of their own"
    assert source.prepare(claim, [T], None).refused == {}
    assert source.unsent(claim, [T]) == set()


def test_a_gap_after_the_position_to_resume_from_is_never_passed_over(
    conn: psycopg.Connection, source: PostgresSource
) -> None:
    conn.execute(TWO_TABLES)
    claim = source.claim(None)
    source.prepare(claim, [T], None)
    resume = source.now()
    conn.execute("insert into t values (1)")
    conn.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", [claim["slot"]])
    with pytest.raises(DefiniteError, match="another process read from it"):
        require_continuity(conn, claim["slot"], Lsn(resume.ordinal))
    conn.execute("select pg_drop_replication_slot(%s)", [claim["slot"]])
    gone = f"slot {claim['slot']} is gone: changes since {source.format(resume)} cannot be read any more"
    with pytest.raises(DefiniteError, match=gone):
        source.prepare(claim, [T], resume)
    with pytest.raises(DefiniteError, match="is gone"):
        source.prepare(claim, [T], START)
    assert slots(conn) == []
    source.prepare(claim, [T], None)
    assert slots(conn) == [claim["slot"]]


def test_examining_finds_what_stands_in_the_way(conn: psycopg.Connection, source: PostgresSource) -> None:
    conn.execute('create table t (id int primary key, a int, "A" int); create table "T" (id int)')
    failed = [check.found for check in source.examine([], []) if check.ok is False]
    assert failed == ["table public.T has no primary key"]
    (told,) = [check.found for check in source.examine([], []) if check.name == "names in the lake"]
    assert told == "another name differs only in case: public.t.A is A_3 there"
