"""Tables, cuts, queries, signals, copies, events, figures and health of one connector on a real Postgres."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Served, config_for, serving

from tailrace.server.api.parts import LISTENERS_MAX

SCRIPT = """
create table t (id int primary key, v text, n numeric, b bytea, f float8, at timestamptz, a int[]);
insert into t values (1, 'one', 1.50, '\\x00ff', 'NaN', '2024-05-06 07:08:09+00', '{1,2}'), (2, 'two', null, null, 1.5,
  null, null);
create table large (id int primary key);
insert into large select generate_series(1, 20000);
create table "a/b/resync" (id int primary key);
"""


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres) -> Iterator[tuple[Served, str]]:
    """One server and one connector for all tests here."""
    dsn = postgres.create_database("lake_routes")
    execute(dsn, SCRIPT)
    with TemporaryDirectory(prefix="tailrace-home-") as home, serving(Path(home)) as server:
        server.create("shop", config_for(dsn))
        server.create("idle", config_for(dsn), initial_state="STOPPED")
        wait_until(lambda: len(server.ask("GET", "/connectors/shop/tables")) == 3, 60)
        wait_until(lambda: {t["state"] for t in server.ask("GET", "/connectors/shop/tables")} == {"live"}, 60)
        yield server, dsn
        server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)
    postgres.drop_database("lake_routes")


def query(server: Served, sql: str, status: int = 200, **more: object) -> dict[str, object]:
    return server.ask("POST", "/query", {"connector": "shop", "sql": sql, **more}, status)  # type: ignore[no-any-return]


def test_a_query_answers_the_newest_commit_as_json(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    found = query(server, "select * from t order by id")
    assert found["columns"] == ["id", "v", "n", "b", "f", "at", "a"]
    first = found["rows"][0]  # type: ignore[index]
    assert first[:2] == [1, "one"]
    assert float(first[2]) == 1.5
    assert first[3:6] == ["\\x00ff", "nan", "2024-05-06T07:08:09+00:00"]
    assert found["is_cut_short"] is False
    execute(dsn, "insert into t (id, v) values (3, 'three')")
    wait_until(lambda: query(server, "select count(*) from t")["rows"] == [[3]], 30)
    cut = server.ask("GET", "/connectors/shop/cuts/newest")
    as_of = query(server, "select count(*) from public.t", as_of=cut["position"])
    assert as_of["position"] == cut["position"]
    execute(dsn, "delete from t where id = 3")


def test_a_query_takes_no_more_than_it_may(shop: tuple[Served, str]) -> None:
    server, _ = shop
    few = query(server, "select * from large", rows_max=10)
    assert (len(few["rows"]), few["is_cut_short"]) == (10, True)  # type: ignore[arg-type]
    slow = "select count(*) from range(100000000000) a where a.range % 7 = 3"
    assert "longer than 0.5 s" in str(query(server, slow, 408, seconds_max=0.5)["message"])
    query(server, "select 1", 400, rows_max=0)
    query(server, "select 1", 400, seconds_max=1e9)
    huge = query(server, "select repeat('x', 1000000) from range(60)", rows_max=100)
    assert huge["is_cut_short"]
    assert len(huge["rows"]) < 40  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sql",
    [
        "drop table t",
        "create table x as select 1",
        "select 1; select 2",
        "insert into t values (9)",
        "copy (select 1) to 'HOME/out.csv'",
        "select * from read_text('/etc/hostname')",
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from glob('/*')",
        "attach 'HOME/server.db'",
        "select * from sqlite_scan('HOME/server.db', 'tailrace_connectors')",
        "select * from read_text('HOME/lakes/shop/_tailrace/source.json')",
        "select * from read_text('HOME/lakes/shop/public/t/../../_tailrace/source.json')",
        "set enable_external_access = true",
        "install httpfs",
        "select * from nowhere",
        "select * from delta_scan('http://127.0.0.1:9/t')",
        "select (select max(v) from \"DELTA_SCAN\"('HOME/lakes/shop/public/t'))",
        "select * from query('select * from delta_scan(''HOME/lakes/shop/public/t'')')",
        "pivot (select * from delta_scan('HOME/lakes/shop/public/t')) on v",
        "select current_setting('secret_directory')",
        "select (select max(setting) from PG_SETTINGS)",
        "select * from pg_catalog.pg_settings",
        "select * from 'HOME/lakes/shop/public/t/*.parquet'",
        "select * from 'HOME/lakes/shop/public/t/_delta_log/00000000000000000000.json'",
        "summarize 'HOME/lakes/shop/public/t/*.parquet'",
        """select * from (with "HOME/lakes/shop/public/t/*.parquet" as (select 1) select 1)
           cross join 'HOME/lakes/shop/public/t/*.parquet'""",
        f"select {'(' * 300}1{')' * 300}",
        f"select {'(' * 300}1",
        "select",
        "",
    ],
)
def test_a_query_reads_the_lake_and_nothing_else(shop: tuple[Served, str], sql: str) -> None:
    server, _ = shop
    home = str(server.supervisor.home.path)
    answer = query(server, sql.replace("HOME", home), 400)
    assert answer["error_code"] == 400
    assert not (Path(home) / "out.csv").exists()


def test_a_query_can_ask_which_tables_there_are(shop: tuple[Served, str]) -> None:
    server, _ = shop
    shown = [row[0] for row in query(server, "show tables")["rows"]]  # type: ignore[attr-defined]
    assert {"public.large", "public.t", "public.a/b/resync"} <= set(shown)
    assert "only a single SELECT is allowed" in str(query(server, "drop table t", 400)["message"])
    refused = str(query(server, "select * from read_csv('x')", 400)["message"])
    assert refused == "function read_csv is not allowed\nhint: query the lake's tables"


def test_queries_of_what_is_not_there_are_told(shop: tuple[Served, str]) -> None:
    server, _ = shop
    server.ask("POST", "/query", {"connector": "none", "sql": "select 1"}, 404)
    server.ask("POST", "/query", {"connector": "idle", "sql": "select 1"}, 409)
    query(server, "select 1", 400, engine="oracle")
    assert query(server, "select 1", engine="duckdb")["rows"] == [[1]]
    for sql in ("select 1", """execute immediate "select transform(1) using 'id' as (x)" """, "select '${env:PATH}'"):
        assert "Spark is not asked over REST" in str(query(server, sql, 400, engine="spark")["message"])
    query(server, "select 1", 400, published=True, as_of="0/1")
    query(server, "select 1", 400, as_of="nonsense")
    assert 'syntax error at or near "selec"' in str(query(server, "selec 1", 400)["message"])
    form = {"content-type": "application/x-www-form-urlencoded"}
    refused = server.ask(
        "POST", "/query", content=b'{"connector": "shop", "sql": "select 1"}', headers=form, status=415
    )
    assert "application/json" in refused["message"]


def test_tables_and_their_shapes_are_shown_and_one_is_copied_again(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    # Other tests have written meanwhile.
    path = "/connectors/shop/tables?behind=true"
    wait_until(lambda: {each["changes_behind"] for each in server.ask("GET", path)} <= {0, 1, 2}, 60)
    execute(dsn, "insert into large values (-1)")
    execute(dsn, "alter table large add column w text; insert into large values (0, 'x')")
    wait_until(lambda: len(server.ask("GET", "/connectors/shop/tables/public.large")["schemas"]) == 2, 30)
    detail = server.ask("GET", "/connectors/shop/tables/large")
    assert [column["name"] for column in detail["schemas"][-1]["columns"]] == ["id", "w"]
    assert detail["schemas"][-1]["key"] == ["id"]
    copies = detail["copies"]
    server.ask("POST", "/connectors/shop/tables/public.large/resync", status=202)

    def is_copied() -> bool:
        found = server.ask("GET", "/connectors/shop/tables/public.large")
        return bool(found["copies"] > copies and found["state"] == "live")

    wait_until(is_copied, 60)
    server.ask("GET", "/connectors/shop/tables/nope", status=404)
    server.ask("POST", "/connectors/shop/tables/nope/resync", status=404)
    server.ask("POST", "/connectors/idle/tables/t/resync", status=409)
    assert server.ask("GET", "/connectors/idle/tables") == []


@pytest.mark.parametrize("name", ["public.a%2Fb%2Fresync", "public.a/b/resync", "a%2fb%2fresync"])
def test_a_table_with_a_slash_in_its_name_is_reached(shop: tuple[Served, str], name: str) -> None:
    server, _ = shop
    path = f"/connectors/shop/tables/{name}"
    before = server.ask("GET", path)
    assert before["table"] == "public.a/b/resync"
    server.ask("POST", f"{path}/resync", status=202)
    wait_until(lambda: server.ask("GET", path)["copies"] > before["copies"], 60)
    wait_until(lambda: server.ask("GET", path)["state"] == "live", 60)
    server.ask("GET", f"{path}/nope", status=404)
    server.ask("POST", path, status=404)


def test_signals_and_copies_are_asked_for_and_followed(shop: tuple[Served, str]) -> None:
    server, _ = shop
    sent = server.ask("POST", "/connectors/shop/signals", {"type": "log", "data": {"message": "m"}, "id": "s1"}, 202)
    assert (sent["id"], sent["type"]) == ("s1", "log")
    wait_until(lambda: server.ask("GET", "/connectors/shop/signals/s1")["state"] == "done", 30)
    server.ask("POST", "/connectors/shop/snapshots", {"data-collections": ["public.none"], "id": "s2"}, 202)
    wait_until(lambda: server.ask("GET", "/connectors/shop/signals/s2")["state"] == "rejected", 30)
    assert (
        server.ask("GET", "/connectors/shop/signals/s2")["result"] == "nothing was copied: no table matches public.none"
    )
    wrong = server.ask("POST", "/connectors/shop/signals", {"type": "nonsense"}, 400)
    assert "invalid signal" in wrong["message"]
    server.ask("GET", "/connectors/shop/signals/none", status=404)
    server.ask("POST", "/connectors/idle/signals", {"type": "log", "data": {"message": "m"}}, 409)
    server.ask("POST", "/connectors/shop/snapshots/pause", status=202)
    asked = {"data-collections": ["public.large"], "id": "copy-1"}
    assert server.ask("POST", "/connectors/shop/snapshots", asked, 202)["type"] == "execute-snapshot"
    wait_until(lambda: server.ask("GET", "/connectors/shop/snapshots")["paused"] == ["*"], 30)
    server.ask("POST", "/connectors/shop/snapshots/resume", {"data-collections": []}, 202)
    wait_until(lambda: server.ask("GET", "/connectors/shop/signals/copy-1")["state"] == "done", 60)
    shown = server.ask("GET", "/connectors/shop/snapshots")
    assert shown["paused"] == []
    # Other tests have tables copied again, which are signals too.
    assert [each["id"] for each in shown["asked"] if not each["id"].startswith("resync-")] == ["s2", "copy-1"]
    assert "completed" in {each["step"] for each in shown["notifications"] if each["signal"] == "copy-1"}
    server.ask("POST", "/connectors/shop/snapshots/stop", status=202)


def test_events_are_sent_as_they_happen(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    found: list[tuple[str, dict[str, object]]] = []
    listening, enough = threading.Event(), threading.Event()

    def listen() -> None:
        with server.http.stream("GET", "/events?connector=shop", timeout=60) as answer:
            kind = ""
            for line in answer.iter_lines():
                listening.set()
                if line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    found.append((kind, json.loads(line[6:])))
                    if {"CutPublished", "StreamProgressed", "LifeChanged"} <= {each for each, _ in found}:
                        enough.set()
                        return

    thread = threading.Thread(target=listen)
    thread.start()
    assert listening.wait(30)
    execute(dsn, "insert into t (id, v) values (7, 'secret-cell')")
    wait_until(lambda: any(kind == "CutPublished" for kind, _ in found), 30)
    server.ask("POST", "/connectors/shop/restart", status=204)
    assert enough.wait(60)
    thread.join(30)
    assert {str(data["connector"]) for _, data in found} == {"shop"}
    assert "secret-cell" not in str(found)
    server.wait_for("shop", "RUNNING")
    execute(dsn, "delete from t where id = 7")


def test_a_listener_names_kinds_and_learns_what_it_missed(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    refused = server.ask("GET", "/events?kinds=Nonsense", status=400)
    assert "there are " in refused["message"]
    first = _next_event(server, "/connectors/shop/events?kinds=CutPublished", dsn)
    assert first["event"] == "CutPublished"
    data = json.loads(first["data"])
    assert data["transactions"] >= 1
    assert data["seconds"] > 0
    assert data["committed"].endswith("Z")
    execute(dsn, "delete from t where id > 100")
    # After it was published: the figures of before may still say that nothing is to be done.
    wait_until(lambda: server.ask("GET", "/connectors/shop/cuts/newest")["seq"] > data["seq"], 30)
    again = _next_event(server, "/events", dsn, {"last-event-id": first["id"]})
    assert (again["event"], json.loads(again["data"])["count"] > 0) == ("EventsMissed", True)


def _next_event(server: Served, path: str, dsn: str, headers: dict[str, str] | None = None) -> dict[str, str]:
    """The first event after something was committed."""
    with server.http.stream("GET", path, headers=headers or {}, timeout=60) as answer:
        lines = answer.iter_lines()
        assert [next(lines), next(lines)] == [": listening", "retry: 2000"]
        execute(dsn, "insert into t (id) select coalesce(max(id), 0) + 101 from t")
        fields = (line.partition(": ")[::2] for line in lines if line and not line.startswith(":"))
        return dict(next(fields) for _ in range(3))


def test_progress_and_figures_say_how_far_a_connector_is(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    execute(dsn, "insert into t (id) values (50); delete from t where id = 50")
    server.wait_for("shop", "RUNNING")
    found: dict[str, Any] = {}
    lake = server.supervisor.lake_home("shop")

    def is_settled() -> bool:
        """What is said, and what is in the lake's files, are of one moment."""
        newest = server.ask("GET", "/connectors/shop/cuts/newest")
        found.update(server.ask("GET", "/connectors/shop/progress"))
        files = [path.stat().st_size for path in lake.log.rglob("*") if path.is_file()]
        cut, disk = found["cut"] or {}, (found["lake"] or {}).get("disk") or {}
        is_level = (found["lag"] or {}).get("transactions") == 0 and cut.get("position") == newest["position"]
        return is_level and cut["tables"] == 3 and disk.get("log_bytes") == sum(files)

    wait_until(is_settled, 30)
    assert (found["life"]["state"], found["life"]["run_state"], found["why_not"]) == ("RUNNING", "running", None)
    assert found["cut"]["seq"] == found["log"]["seq"]
    assert found["source"] == {
        "kind": "postgres",
        "host": "127.0.0.1",
        "port": config_for(dsn)["database.port"],
        "database": "lake_routes",
    }
    assert found["lake"]["tables"] == {"live": 3}
    idle = server.ask("GET", "/connectors/idle/progress")
    assert (idle["life"]["phase"], idle["cut"], idle["lag"], idle["lake"]) == ("idle", None, None, None)
    expanded = server.ask("GET", "/connectors?expand=progress&expand=status")
    assert expanded["shop"]["progress"]["name"] == "shop"
    assert expanded["idle"]["status"]["connector"]["state"] == "STOPPED"
    wait_until(lambda: _figures(server)["connectors"]["shop"]["lag_transactions"][-1] is not None, 30)
    figures = _figures(server)
    assert len(figures["times"]) == len(figures["connectors"]["shop"]["lag_seconds"])
    assert set(figures["connectors"]["idle"]["lag_seconds"]) == {None}
    one = server.ask("GET", "/connectors/shop/figures?figures=lag_bytes&since=2100-01-01T00:00:00Z")
    assert (one["times"], one["connectors"]) == ([], {"shop": {"lag_bytes": []}})
    for wrong in ("figures=nonsense", "step=2", "since=2026-01-01T00:00:00", "since=yesterday"):
        server.ask("GET", f"/connectors/shop/figures?{wrong}", status=400)
    server.ask("GET", "/connectors/none/progress", status=404)


def _figures(server: Served) -> Any:
    return server.ask("GET", "/figures?step=1")


def test_only_so_many_listen_at_once_and_each_leaves_its_place(shop: tuple[Served, str]) -> None:
    server, _ = shop
    with ExitStack() as stack:
        for _ in range(LISTENERS_MAX):
            answer = stack.enter_context(server.http.stream("GET", "/connectors/shop/events"))
            assert answer.status_code == 200
        server.ask("GET", "/events", status=429)
    wait_until(lambda: server.supervisor.hub.listeners == 0, 30)
    with server.http.stream("GET", "/events") as answer:
        assert answer.status_code == 200


def test_a_body_whose_length_is_not_told_is_refused_where_it_becomes_too_long(shop: tuple[Served, str]) -> None:
    server, _ = shop
    config = json.dumps({"name": "long", "config": {}}).encode()
    parts = (each for each in (config, *[b" " * 65536] * 20))
    headers = {"content-type": "application/json"}
    assert server.ask("POST", "/connectors", content=parts, headers=headers, status=413)["error_code"] == 413
    assert server.http.get("/connectors/long").status_code == 404


def figure(text: str, name: str) -> float:
    """Of the connector `shop`."""
    found = re.search(rf'^tailrace_{name}\{{connector="shop"\}} (\S+)$', text, re.MULTILINE)
    assert found, name
    return float(found[1])


def test_figures_and_health_say_whether_it_progresses(shop: tuple[Served, str]) -> None:
    server, dsn = shop
    execute(dsn, "insert into large select generate_series(30000, 30010)")
    server.wait_for("shop", "RUNNING")
    wait_until(lambda: 'tailrace_lag_transactions{connector="shop"} 0.0' in server.http.get("/metrics").text, 30)
    text = server.http.get("/metrics").text
    for line in (
        'tailrace_connector_state{connector="shop",state="RUNNING"} 1.0',
        'tailrace_connector_state{connector="idle",state="STOPPED"} 1.0',
        'tailrace_progressing{connector="shop"} 1.0',
        'tailrace_lag_seconds{connector="shop"} 0.0',
        'tailrace_tables{connector="shop",state="live"} 3.0',
        'tailrace_publish_seconds_bucket{connector="shop",le="+Inf"}',
        "process_resident_memory_bytes",
    ):
        assert line in text
    for name in ("lag_bytes", "log_bytes", "disk_free_bytes", "published_transactions_total", "errors_total"):
        assert f"tailrace_{name}{{" in text
    assert f'tailrace_build_info{{version="{version("tailrace")}"}} 1.0' in text
    assert figure(text, "source_retained_bytes") > 0
    assert "tailrace_source_slot_safe_bytes{" not in text, "there is no limit"
    assert abs(figure(text, "newest_cut_timestamp_seconds") - time.time()) < 300
    before = figure(text, "changes_total")
    execute(dsn, "insert into large select generate_series(40000, 40099)")
    wait_until(lambda: figure(server.http.get("/metrics").text, "changes_total") >= before + 100, 30)
    assert server.ask("GET", "/health/live") == {"status": "live"}
    wait_until(lambda: server.http.get("/health/ready").status_code == 200, 30)
    server.create("bad", config_for(dsn) | {"database.dbname": "none"})
    server.wait_for("bad", "FAILED")
    ready = server.ask("GET", "/health/ready", status=503)
    assert "no such database" in ready["not_progressing"]["bad"]
    server.ask("DELETE", "/connectors/bad", status=204)
    assert 'connector="bad"' not in server.http.get("/metrics").text
