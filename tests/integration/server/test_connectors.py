"""Kafka Connect's `/connectors` on a real Postgres: status codes, bodies, and lakes that equal their sources."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.serving import CLASS, Served, config_for, serving

import tailrace
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.server.errors import RequestConflictError
from tailrace.server.supervisor.lifecycle import Target

JSON = "application/json"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as served:
        yield served


def rows(lake: Path, table: str = "public.t") -> int:
    return len(tailrace.arrow(lake, table)) if LakeHome(lake).cuts.newest() else -1


def test_a_connector_from_its_creation_to_its_removal(server: Served, database: str) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1), (2)")
    made = server.create("shop", config_for(database))
    assert made["name"] == made["config"]["name"] == "shop"
    assert (made["type"], made["tasks"]) == ("source", [{"connector": "shop", "task": 0}])
    lake = server.supervisor.lake_home("shop").lake
    server.wait_for("shop", "RUNNING")
    wait_until(lambda: rows(lake) == 2, 60)
    status = server.status("shop")
    port = server.address.rpartition(":")[2]
    assert status == {
        "name": "shop",
        "connector": {"state": "RUNNING", "worker_id": f"127.0.0.1:{port}"},
        "tasks": [{"id": 0, "state": "RUNNING", "worker_id": f"127.0.0.1:{port}"}],
        "type": "source",
    }
    assert server.ask("GET", "/connectors") == ["shop"]
    expanded = server.ask("GET", "/connectors?expand=status&expand=info")
    assert expanded["shop"]["status"]["connector"]["state"] == "RUNNING"
    assert expanded["shop"]["info"] == server.ask("GET", "/connectors/shop")
    assert server.ask("GET", "/connectors/shop/topics") == {"shop": {"topics": ["public.t"]}}
    assert server.ask("GET", "/connectors/shop/tasks")[0]["id"] == {"connector": "shop", "task": 0}
    assert server.ask("GET", "/connectors/shop/tasks/0/status")["state"] == "RUNNING"
    server.ask("GET", "/connectors/shop/tasks/1/status", status=404)

    server.ask("PUT", "/connectors/shop/pause", status=202)
    server.wait_for("shop", "PAUSED")
    execute(database, "insert into t values (3)")
    server.ask("PUT", "/connectors/shop/resume", status=202)
    wait_until(lambda: rows(lake) == 3, 60)

    stopped = server.http.put("/connectors/shop/stop")
    assert (stopped.status_code, "content-type" in stopped.headers) == (204, False)
    assert server.wait_for("shop", "STOPPED")["tasks"] == []
    execute(database, "insert into t values (4)")
    server.ask("PUT", "/connectors/shop/resume", status=202)
    wait_until(lambda: rows(lake) == 4, 60)

    server.ask("POST", "/connectors/shop/restart", status=204)
    restarted = server.ask("POST", "/connectors/shop/restart?includeTasks=true", status=202)
    assert restarted["connector"]["state"] in ("RESTARTING", "UNASSIGNED", "RUNNING")
    server.wait_for("shop", "RUNNING")
    wait_until(lambda: LakeHome(lake).cuts.newest() is not None)
    deleted = server.http.delete("/connectors/shop")
    assert (deleted.status_code, "content-type" in deleted.headers) == (204, False)
    assert server.ask("GET", "/connectors") == []
    assert server.ask("GET", "/connectors/shop/status", status=404) == {
        "error_code": 404,
        "message": "No status found for connector shop",
    }
    # The lake and the slot stay: a connector that is made again continues.
    execute(database, "insert into t values (5)")
    server.create("shop", config_for(database))
    wait_until(lambda: rows(lake) == 5, 60)
    wait_until(
        lambda: (LakeHome(lake).cuts.newest() or 0) and tailrace.arrow(lake, "t", published=True).num_rows == 5, 60
    )
    assert_equal(database, lake, "public.t")
    server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)


def test_what_is_wrong_is_answered_as_kafka_connect_does(server: Served, database: str) -> None:
    config = config_for(database)
    assert server.ask("GET", "/connectors/none", status=404) == {
        "error_code": 404,
        "message": "Connector none not found",
    }
    for method, path in [
        ("GET", "config"),
        ("GET", "tasks"),
        ("PUT", "pause"),
        ("PUT", "resume"),
        ("PUT", "stop"),
        ("POST", "restart"),
        ("GET", "topics"),
    ]:
        assert server.ask(method, f"/connectors/none/{path}", status=404)["error_code"] == 404
    server.ask("DELETE", "/connectors/none", status=404)
    server.ask("PATCH", "/connectors/none/config", {"a": "b"}, 404)
    server.create("one", config, initial_state="STOPPED")
    again = server.ask("POST", "/connectors", {"name": "one", "config": config}, 409)
    assert again == {"error_code": 409, "message": "Connector one already exists"}
    other = server.ask("PUT", "/connectors/two/config", config | {"name": "three"}, 400)
    assert other["message"].startswith("Connector name configuration (three) doesn't match")
    wrong = server.ask("POST", "/connectors", {"name": "two", "config": config | {"slot.nmae": "x"}}, 400)
    assert "contains the following 1 error(s)" in wrong["message"]
    assert "slot.name" in wrong["message"]
    assert server.ask("POST", "/connectors", {"config": config}, 400)["error_code"] == 400
    assert server.ask("POST", "/connectors", content=b"{", status=400)["error_code"] == 400
    assert server.ask("GET", "/nowhere", status=404)["error_code"] == 404
    assert server.ask("PUT", "/connectors", status=405)["error_code"] == 405
    for method, path, allowed in (
        ("PUT", "/connectors", "GET, POST"),
        ("POST", "/connectors/one", "GET, DELETE"),
        ("POST", "/connectors/one/config", "GET, PUT, PATCH"),
    ):
        assert server.http.request(method, path).headers["allow"] == allowed
    for name in ("", " ", ".", "..", "a/b", "a\\b", "a\nb", "x" * 256):
        server.ask("POST", "/connectors", {"name": name, "config": config}, 400)
    relative = server.ask("POST", "/connectors", {"name": "two", "config": config | {"lake.path": "~/lake"}}, 400)
    assert relative["message"].startswith("lake.path '~/lake' is relative")
    assert server.ask("GET", "/connectors") == ["one"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/connectors", '{"name": "z", "config": {"\\ud800": "\\udfff"}}'),
        ("POST", "/connectors", '{"name": "\\ud800", "config": {}}'),
        ("PUT", "/connectors/z/config", '{"\\ud800": "\\udfff"}'),
        ("PUT", "/connectors/z/config", '{"database.hostname": "\\udfff"}'),
        ("PATCH", "/connectors/stopped/config", '{"\\ud800": "\\udfff"}'),
        ("PUT", f"/connector-plugins/{CLASS}/config/validate", '{"\\ud800": "\\udfff"}'),
    ],
)
def test_text_that_is_none_is_answered_without_an_error_of_ours(
    server: Served, database: str, method: str, path: str, body: str
) -> None:
    server.create("stopped", config_for(database), initial_state="STOPPED")
    answer = server.ask(method, path, content=body.encode(), status=(200, 400), headers={"content-type": JSON})
    assert answer.get("error_code", 400) == 400
    assert server.ask("GET", "/connectors") == ["stopped"]


def test_one_that_is_being_removed_keeps_its_name_until_it_is_gone(server: Served, database: str) -> None:
    execute(database, "create table t (id int primary key)")
    config = config_for(database)
    server.create("o", config)
    server.wait_for("o", "RUNNING")
    supervisor = server.supervisor
    with ThreadPoolExecutor(1) as pool, supervisor._hosted["o"]._lock:
        # Dropping waits for the run, which the lock that we hold keeps from ending.
        removal = pool.submit(supervisor.delete, "o", drop=True)
        wait_until(lambda: "o" in supervisor._removing, 10)
        with pytest.raises(RequestConflictError, match="is being removed"):
            supervisor.delete("o")
        with pytest.raises(RequestConflictError, match="is being removed"):
            supervisor.want("o", Target.RUNNING)
        with pytest.raises(RequestConflictError, match="already exists"):
            supervisor.create("o", config)
    assert removal.result(60)
    server.create("o", config | {"snapshot.mode": "when_needed"})
    server.wait_for("o", "RUNNING")
    server.ask("DELETE", "/connectors/o?drop_source=true", status=204)


def test_a_put_makes_or_changes_and_of_two_editors_one_gets_a_conflict(server: Served, database: str) -> None:
    config = config_for(database)
    answer = server.http.put("/connectors/odd name %/config", json=config)
    assert (answer.status_code, answer.headers["location"]) == (201, "/connectors/odd%20name%20%25")
    tag = server.http.get("/connectors/odd name %/config").headers["etag"]
    server.ask("PUT", "/connectors/odd name %/stop", status=204)
    changed = server.ask(
        "PUT", "/connectors/odd name %/config", config | {"readers.max": "3"}, 200, headers={"if-match": tag}
    )
    assert changed["config"]["readers.max"] == "3"
    late = server.ask("PUT", "/connectors/odd name %/config", config, 409, headers={"if-match": tag})
    assert late["error_code"] == 409
    server.ask("PATCH", "/connectors/odd name %/config", {"readers.max": None, "snapshot.mode": "initial"}, 200)
    now = server.ask("GET", "/connectors/odd name %/config")
    assert "readers.max" not in now
    assert now["snapshot.mode"] == "initial"
    assert server.supervisor.lake_home("odd name %").lake.name == "odd~20name~20~25"


def test_another_choice_of_tables_copies_the_new_ones_and_removes_those_that_are_left_out(
    server: Served, database: str
) -> None:
    execute(database, "create table t (id int primary key); create table u (id int primary key)")
    execute(database, "insert into t values (1), (2); insert into u values (1)")
    server.create("shop", config_for(database) | {"table.include.list": r"public\.t"})
    lake = server.supervisor.lake_home("shop").lake
    wait_until(lambda: rows(lake) == 2, 60)
    server.ask("PATCH", "/connectors/shop/config", {"table.include.list": r"public\.t,public\.u"}, 200)
    execute(database, "insert into t values (3); insert into u values (2)")
    states = LakeHome(lake).tables
    u, t = TableId("public", "u"), TableId("public", "t")
    wait_until(lambda: (found := states.load().get(u)) is not None and found.state is TableState.LIVE, 60)
    wait_until(lambda: (rows(lake), rows(lake, "public.u")) == (3, 2), 60)
    assert states.load()[t].copy == 1
    server.ask("PATCH", "/connectors/shop/config", {"table.include.list": r"public\.u"}, 200)
    wait_until(lambda: states.load()[t].state is TableState.REMOVED, 60)
    execute(database, "insert into t values (4); insert into u values (3)")
    wait_until(lambda: rows(lake, "public.u") == 3, 60)
    wait_until(lambda: {*LakeHome(lake).cuts.all()[-1].tables} == {"public.u"}, 60)


def test_two_connectors_share_neither_a_lake_nor_a_slot(server: Served, database: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    config = config_for(database, lake_path=lake, slot_name="one_slot")
    server.create("one", config, initial_state="STOPPED")
    same_lake = server.ask("POST", "/connectors", {"name": "two", "config": config | {"slot.name": "other"}}, 409)
    assert "connector one has its lake" in same_lake["message"]
    for path in (f"{lake}/inside", f"{lake}/../lake", str(tmp_path)):
        below = config | {"slot.name": "other", "lake.path": path}
        server.ask("POST", "/connectors", {"name": "two", "config": below}, 409)
    same_slot = server.ask("POST", "/connectors", {"name": "two", "config": config | {"lake.path": lake + "2"}}, 409)
    assert "connector one has the slot one_slot" in same_slot["message"]
    assert server.ask("GET", "/connectors") == ["one"]


def test_secrets_are_never_shown_and_stay_when_they_are_sent_back_as_shown(server: Served, database: str) -> None:
    config = config_for(database, database_password="canary-7")
    made = server.create("one", config, initial_state="STOPPED")
    shown = made["config"]
    assert "canary" not in str(made) + str(server.ask("GET", "/connectors?expand=info&expand=status"))
    server.ask("PUT", "/connectors/one/config", shown | {"readers.max": "2"}, 200)
    stored = server.supervisor.view("one").config
    assert (stored["database.password"], stored["readers.max"]) == ("canary-7", "2")
    wrong = server.ask("POST", "/connectors", {"name": "two", "config": config | {"no.such": "canary-8"}}, 400)
    assert "canary" not in wrong["message"]


def test_one_that_fails_says_why_and_touches_no_other(server: Served, database: str) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    server.create("good", config_for(database, slot_name="good_slot"))
    bad = config_for(database) | {"database.dbname": "no_such_database"}
    server.create("bad", bad)
    away = config_for(database) | {"database.port": "1"}
    server.create("away", away)
    failed = server.wait_for("bad", "FAILED")
    assert "no such database" in failed["connector"]["trace"]
    assert "hint:" in failed["tasks"][0]["trace"]
    assert "cannot connect" in server.wait_for("away", "RESTARTING")["connector"]["trace"]
    server.wait_for("good", "RUNNING")
    wait_until(lambda: rows(server.supervisor.lake_home("good").lake) == 1, 60)
    # Another configuration begins again.
    server.ask("PUT", "/connectors/bad/config", config_for(database, slot_name="second"), 200)
    server.wait_for("bad", "RUNNING")
    # A resume does not, a restart does.
    server.ask("PUT", "/connectors/away/config", bad, 200)
    server.wait_for("away", "FAILED")
    server.ask("PUT", "/connectors/away/resume", status=202)
    assert server.status("away")["connector"]["state"] == "FAILED"
    server.ask("POST", "/connectors/away/restart?onlyFailed=true", status=202)
    server.wait_for("away", "FAILED")
    # Each lake's messages are its own; why a run ended is in the server's.
    lake = server.supervisor.lake_home("good")
    assert "no_such_database" not in lake.runs.messages.read_text()
    assert "no_such_database" in server.supervisor.home.messages.read_text()


def test_plugins_and_what_is_wrong_with_a_configuration(server: Served, database: str) -> None:
    plugins = server.ask("GET", "/connector-plugins")
    assert CLASS in [each["class"] for each in plugins]
    assert {each["type"] for each in plugins} == {"source"}
    assert len(server.ask("GET", f"/connector-plugins/{CLASS}/config")) > 50
    path = "/connector-plugins/PostgresConnector/config/validate"
    wrong = server.ask("PUT", path, config_for(database, database_password="canary") | {"readers.max": "many"})
    values = {each["value"]["name"]: each["value"] for each in wrong["configs"]}
    assert wrong["error_count"] == 2
    assert values["readers.max"]["errors"]
    assert values["name"]["errors"]
    assert "canary" not in str(wrong)
    assert server.ask("PUT", path, config_for(database) | {"name": "x"})["error_count"] == 0
    server.ask("PUT", "/connector-plugins/Mongo/config/validate", {}, 404)
    server.ask("PUT", path, {"connector.class": "tailrace.postgresql"}, 400)


def test_loggers_can_be_asked_to_say_more(server: Served) -> None:
    everywhere = server.ask("GET", "/admin/loggers")["tailrace"]
    before = server.ask("GET", "/admin/loggers/tailrace.server.supervisor.hosted")["level"]
    assert server.ask("PUT", "/admin/loggers/tailrace.server.supervisor.hosted", {"level": "debug"}) == [
        "tailrace.server.supervisor.hosted"
    ]
    changed = server.ask("GET", "/admin/loggers/tailrace.server.supervisor.hosted")
    assert changed["level"] == "DEBUG"
    assert abs(changed["last_modified"] / 1000 - time.time()) < 3600
    assert server.ask("GET", "/admin/loggers")["tailrace"] == everywhere
    wide = server.http.put("/admin/loggers/tailrace.server.supervisor.hosted?scope=cluster", json={"level": before})
    assert (wide.status_code, wide.content) == (204, b"")
    assert server.ask("GET", "/health")["status"] == "healthy"
    server.ask("PUT", "/admin/loggers/pyspark", {"level": "DEBUG"}, 404)
    server.ask("PUT", "/admin/loggers/tailrace", {"level": "loud"}, 400)
    assert server.ask("GET", "/")["version"]
