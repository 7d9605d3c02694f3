"""Statements carried out on sources in memory."""

from __future__ import annotations

import pytest
from tests.unit.server.sql.memory_sources import MemorySources

from tailrace.errors import TransientError
from tailrace.model.table import TableId
from tailrace.server.sql.execution import Result, ResultMessage, ResultRows, execute
from tailrace.server.sql.language.problems import SqlError

ADDRESS = "host 'db' database shop user ann"
TABLES = [TableId(*each.split(".")) for each in ("public.orders", "public.items", "sales.orders", "sales.teams")]


@pytest.fixture
def sources() -> MemorySources:
    return MemorySources(TABLES)


def run(sources: MemorySources, text: str) -> list[Result]:
    return list(execute(text, sources))


def said(sources: MemorySources, text: str) -> str:
    (result,) = run(sources, text)
    assert isinstance(result, ResultMessage)
    return result.text


def failed(sources: MemorySources, text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        run(sources, text)
    return caught.value


def properties(sources: MemorySources, name: str = "shop") -> dict[str, str]:
    config = sources.config(name)
    assert config is not None
    return dict(config.properties)


def followed(sources: MemorySources, name: str = "shop") -> list[str]:
    return [str(table) for table in sources.followed(name)]


def test_one_statement_makes_one_connector_with_all_its_tables(sources: MemorySources) -> None:
    text = """
        create sources shop from postgres host 'db.example.com' port 5433 database 'Shop' user ann
        password secret '${file:pyproject.toml}' ssl mode 'verify-full' publication p slot s lake 'lakes/here'
        namespace sales tables (orders, public.items, 'teams')
        with (snapshot.mode = 'never', lake.publish.interval.ms = 500)
    """
    assert said(sources, text) == "created source shop"
    assert properties(sources) == {
        "name": "shop",
        "connector.class": "tailrace.postgresql",
        "database.hostname": "db.example.com",
        "database.port": "5433",
        "database.dbname": "Shop",
        "database.user": "ann",
        "database.password": "${file:pyproject.toml}",
        "database.sslmode": "verify-full",
        "publication.name": "p",
        "slot.name": "s",
        "lake.path": "lakes/here",
        "table.include.list": r"sales\.orders,public\.items,sales\.teams",
        "snapshot.mode": "never",
        "lake.publish.interval.ms": "500",
    }
    assert followed(sources) == ["public.items", "sales.orders", "sales.teams"]


def test_a_source_without_a_name_is_called_as_its_database(sources: MemorySources) -> None:
    text = "create sources from postgres host 'host=kanto user=ash password=x dbname=pokemon' namespace sales"
    assert said(sources, text) == "created source pokemon"
    assert followed(sources, "pokemon") == ["sales.orders", "sales.teams"]
    error = failed(sources, "\ncreate sources from postgres connection 'postgresql://ann@a,b/d'")
    assert (error.message, error.hint) == (
        "line 2, column 1: the source has no name",
        "CREATE SOURCES name FROM POSTGRES …",
    )


@pytest.mark.parametrize(
    ("clause", "count"), [("", 4), ("for all tables", 4), ("namespace sales", 2), ("table items", 1)]
)
def test_without_a_list_all_tables_are_meant(sources: MemorySources, clause: str, count: int) -> None:
    run(sources, f"create source shop from postgres {ADDRESS} {clause}")
    assert len(followed(sources)) == count


def test_a_name_that_is_taken_is_an_error_unless_it_may_be(sources: MemorySources) -> None:
    create = f"create sources {{}} shop from postgres {ADDRESS} tables (orders)"
    run(sources, create.format(""))
    stored = sources.stored["shop"]
    assert said(sources, create.format("if not exists")) == "source shop is there already: nothing was done"
    error = failed(sources, create.format(""))
    assert error.status == 409
    assert error.message == "line 1, column 17: there is a source named shop"
    assert error.hint == "ALTER SOURCE shop ADD TABLE …, or give the new one another name"
    assert sources.stored["shop"] == stored


@pytest.mark.parametrize(
    ("rest", "caret", "problem"),
    [
        ("port 99999999999", "port 99999999999", "PORT: '99999999999' is too large"),
        ("ssl mode maybe", "ssl mode maybe", "SSL MODE: 'maybe' is not known"),
        ("with (a = 1, snapshot.mdoe = never)", "a = *, snapshot.mdoe", "a: unknown; snapshot.mdoe: unknown: did you"),
        ("with (column.mask.hash = x)", "column.mask.hash = *)", "column.mask.hash: unknown"),
        ("password secret '${env:NOT_SET_ANYWHERE}'", "password secret", "PASSWORD: ${env:NOT_SET_ANYWHERE}: the env"),
        ("slot a with (slot.name = b)", "slot.name = *)", "slot.name: SLOT says slot.name already"),
        ("with (name = b)", "name = *)", "name is not an option"),
        ("tables (a) with (table.include.list = b)", "table.include.list = *)", "table.include.list: TABLES says"),
        ("password '********'", "password '********'", "PASSWORD: ******** only stands in place of a secret"),
        ("namespace n tables (a, n.a)", "n.a)", "this table is named twice"),
    ],
)
def test_a_problem_of_a_property_is_told_at_the_word_that_set_it(
    sources: MemorySources, rest: str, caret: str, problem: str
) -> None:
    error = failed(sources, f"create source s from postgres {ADDRESS} {rest}")
    line, below = error.excerpt.split("\n")
    assert error.problem.startswith(problem)
    assert line[len(below) - 1 :].startswith(caret)
    assert sources.stored == {}


def test_what_an_address_lacks_is_told_at_the_statement(sources: MemorySources) -> None:
    error = failed(sources, "show sources;\n create source s from postgres host 'h'")
    assert error.message.startswith("line 2, column 16: database.user: required")
    assert "database.dbname: required" in error.message


def test_properties_that_mean_nothing_here_are_noted(sources: MemorySources) -> None:
    (result,) = run(sources, f"create source s from postgres {ADDRESS} with (tasks.max = 3)")
    assert isinstance(result, ResultMessage)
    assert [note.partition(":")[0] for note in result.notes] == ["tasks.max"]


def test_tables_are_added_and_dropped(sources: MemorySources) -> None:
    run(sources, f"create source shop from postgres {ADDRESS} table orders")
    assert said(sources, "alter source shop add table items, sales.teams") == "altered source shop"
    assert followed(sources) == ["public.orders", "public.items", "sales.teams"]
    run(sources, "alter source shop drop table orders, sales.teams")
    assert properties(sources)["table.include.list"] == r"public\.items"
    assert "table.exclude.list" not in properties(sources)


def test_a_table_of_a_source_that_follows_all_is_left_out_and_taken_in_again(sources: MemorySources) -> None:
    run(sources, f"create source shop from postgres {ADDRESS}")
    run(sources, "alter source shop drop table orders; alter source shop drop table sales.*")
    assert followed(sources) == ["public.items"]
    run(sources, "alter source shop add table sales.*, orders")
    assert len(followed(sources)) == 4
    assert "table.exclude.list" not in properties(sources)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("add table orders", "the source has public.orders already"),
        ("drop table items", "the source has no table public.items"),
        ("drop table sales.*", "the source has no table sales.*"),
        ("drop table orders", "a source has at least one table, and this would be its last"),
        ("drop table public.*", "a source has at least one table, and this would be its last"),
        ("reset (snapshot.mode)", "snapshot.mode is not set for this source"),
        ("reset (name)", "name: missing"),
        ("set (connector.class = x)", "connector.class is not an option"),
        ("set (snapshot.mode = sometimes)", "snapshot.mode: 'sometimes' is not known"),
    ],
)
def test_an_alteration_that_makes_no_sense_changes_nothing(
    sources: MemorySources, statement: str, problem: str
) -> None:
    run(sources, f"create source shop from postgres {ADDRESS} table orders")
    stored = sources.stored["shop"]
    assert failed(sources, f"alter source shop {statement}").problem.startswith(problem)
    assert sources.stored["shop"] == stored


@pytest.mark.parametrize("statement", ["add table if not exists orders", "drop table if exists items, sales.teams"])
def test_an_alteration_that_may_be_done_already_is_not_done_again(sources: MemorySources, statement: str) -> None:
    run(sources, f"create source shop from postgres {ADDRESS} table orders")
    assert said(sources, f"alter source shop {statement}") == "source shop already matches; nothing changed"
    assert sources.stored["shop"].version == 1


def test_a_list_of_schemas_or_a_wide_exclusion_cannot_be_added_to(sources: MemorySources) -> None:
    run(sources, f"create source a from postgres {ADDRESS} with (schema.include.list = sales)")
    assert failed(sources, "alter source a add table orders").hint == "ALTER SOURCE a SET (schema.include.list = …)"
    run(sources, f"create source b from postgres {ADDRESS} with (table.exclude.list = 'public\\.(orders|items)')")
    error = failed(sources, "alter source b add table orders")
    assert error.problem == "table.exclude.list leaves out public.orders, and more"
    run(sources, "alter source b drop table sales.orders")
    assert followed(sources, "b") == ["sales.teams"]


def test_options_are_set_and_reset(sources: MemorySources) -> None:
    run(sources, f"create source shop from postgres {ADDRESS} with (lake.retain = '2d', snapshot.mode = never)")
    run(sources, "alter source shop set (lake.retain = '3d', log.keep = '1h'); alter source shop reset (snapshot.mode)")
    kept = {key: value for key, value in properties(sources).items() if key in ("lake.retain", "log.keep")}
    assert kept == {"lake.retain": "3d", "log.keep": "1h"}
    assert "snapshot.mode" not in properties(sources)


def test_an_alteration_decides_again_after_an_edit_by_another(sources: MemorySources) -> None:
    run(sources, f"create source shop from postgres {ADDRESS} table orders")
    sources.edits_by_others = 3
    assert said(sources, "alter source shop add table items") == "altered source shop"
    assert followed(sources) == ["public.orders", "public.items"]
    assert properties(sources)["lake.retain"] == "1d"
    sources.edits_by_others = 1000
    with pytest.raises(TransientError, match="is being changed by someone else"):
        run(sources, "alter source shop drop table items")


def test_dropped_sources_are_gone_and_all_of_them_must_be_there(sources: MemorySources) -> None:
    run(sources, "; ".join(f"create source {name} from postgres {ADDRESS}" for name in "abc"))
    error = failed(sources, "drop source a, nope, b")
    assert error.status == 404
    assert error.message == "line 1, column 16: there is no source named nope"
    assert sorted(sources.stored) == ["a", "b", "c"]
    assert run(sources, "drop source if exists a, nope, b cascade") == [
        ResultMessage(
            "dropped sources a, b; what the lake has stays", ("dropped the slot of a", "dropped the slot of b")
        )
    ]
    assert said(sources, "drop source c") == "dropped source c; what the lake has stays"
    assert said(sources, "drop source if exists c") == "there is no such source: nothing was done"
    assert (sources.stored, sources.cascades) == ({}, ["a", "b"])


def test_a_source_that_is_not_there_is_told_with_those_that_are(sources: MemorySources) -> None:
    assert failed(sources, "show create source a").hint == "there are no sources yet"
    run(sources, f"create source shop from postgres {ADDRESS} table orders")
    assert failed(sources, "alter source shpo reset (a)").hint == "there is shop"
    hint = "public.orders is a table of shop: ALTER SOURCE shop ADD TABLE or DROP TABLE"
    assert failed(sources, "drop source orders").hint == hint
    assert said(sources, "alter source if exists x add table y") == "there is no source x: nothing was done"


def test_sources_are_shown_with_their_tables_and_states(sources: MemorySources) -> None:
    run(sources, f"create source b from postgres {ADDRESS} tables (orders, items)")
    run(sources, f"create source a_b from postgres {ADDRESS} tables (nothing)")
    everything = ResultRows(
        ("source", "state", "table", "table_state", "problem"),
        (
            ("a_b", "RUNNING", None, None, None),
            ("b", "RUNNING", "public.orders", "live", None),
            ("b", "RUNNING", "public.items", "live", None),
        ),
    )
    assert run(sources, "show sources") == [everything]
    for like, count in (("%", 3), ("b", 2), (r"a\_b", 1), (r"_\_b", 1), ("__b", 1), ("b%", 2), (r"\%", 0), ("[a]%", 0)):
        (found,) = run(sources, f"show sources like '{like}'")
        assert isinstance(found, ResultRows)
        assert len(found.rows) == count, like


def test_nothing_is_done_when_a_later_statement_cannot_be_read(sources: MemorySources) -> None:
    failed(sources, f"create source s from postgres {ADDRESS}; shw")
    assert sources.stored == {}


def test_what_was_done_before_an_error_stays_done(sources: MemorySources) -> None:
    results = execute(f"create source s from postgres {ADDRESS}; drop source t", sources)
    assert next(results) == ResultMessage("created source s")
    with pytest.raises(SqlError):
        next(results)
    assert list(sources.stored) == ["s"]


@pytest.mark.parametrize(
    "address",
    [
        "host db database d user u password 'CANARY'",
        "host 'host=db dbname=d user=u password=CANARY'",
        "host 'postgresql://u:CANARY@db/d'",
        "host 'postgresql://u:CANARY@db,db2/d'",
        "host 'host=db dbname=d user=u password=CANARY options=-csearch_path=x'",
        "with (database.dsn = 'postgresql://u:CANARY@db/d')",
    ],
)
def test_a_password_is_never_shown(sources: MemorySources, address: str) -> None:
    create = f"create source s from postgres {address}"
    results = run(sources, f"{create}; show create source s; show sources; alter source s set (lake.retain = '3d')")
    error = failed(sources, create)
    refused = failed(sources, create.replace("source s", "source t") + " slot ''' port x")
    told = f"{results!r} {error!r} {error.excerpt} {error.hint} {refused!r} {refused.excerpt} {sources.config('s')!r}"
    assert "CANARY" not in told
    assert "CANARY" in str(properties(sources, "s"))
