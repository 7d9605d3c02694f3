"""KIP-875 over REST: offsets are read always and changed only while the connector is stopped."""

from __future__ import annotations

from pathlib import Path

import psycopg
from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.serving import config_for, serving

import tailrace
from tailrace.lake.home import LakeHome
from tailrace.offsets.kinds import KINDS


def test_offsets_are_shown_edited_reset_and_taken_back(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    with serving(tmp_path / "home") as server:
        server.create("shop", config_for(database, topic_prefix="shop_server"))
        lake = server.supervisor.lake_home("shop").lake
        wait_until(lambda: LakeHome(lake).cuts.newest() is not None, 60)
        shown = server.ask("GET", "/connectors/shop/offsets")
        assert [each["partition"] for each in shown["offsets"]] == [{"server": "shop_server"}]
        for method, path in [("PATCH", ""), ("DELETE", ""), ("POST", "/undo")]:
            refused = server.ask(method, f"/connectors/shop/offsets{path}", shown if method == "PATCH" else None, 400)
            assert "must be in the STOPPED state" in refused["message"]
        server.ask("PUT", "/connectors/shop/stop", status=204)
        server.wait_for("shop", "STOPPED")
        shown = server.ask("GET", "/connectors/shop/offsets")
        dry = server.ask("PATCH", "/connectors/shop/offsets?dry_run=true", shown)
        assert (dry["possible"], dry["tables_to_copy"]) == (True, [])
        nonsense = {"offsets": [{"partition": {"server": "shop_server"}, "offset": {"lsn": "many"}}]}
        assert "lsn" in server.ask("PATCH", "/connectors/shop/offsets", nonsense, 400)["message"]
        server.ask("PATCH", "/connectors/shop/offsets", {"nothing": 1}, 400)
        forgotten = server.ask("DELETE", "/connectors/shop/offsets?dry_run=true")
        assert (forgotten["direction"], forgotten["tables_to_copy"]) == ("reset", ["public.t"])
        assert server.ask("GET", "/connectors/shop/offsets/history") == [], "a dry run leaves no trace"
        assert "altered" in server.ask("PATCH", "/connectors/shop/offsets", shown)["message"]
        tag = server.http.get("/connectors/shop/offsets").headers["etag"]
        assert "reset" in server.ask("DELETE", "/connectors/shop/offsets", headers={"if-match": tag})["message"]
        server.ask("DELETE", "/connectors/shop/offsets", status=409, headers={"if-match": tag})
        history = server.ask("GET", "/connectors/shop/offsets/history")
        assert [each["kind"] for each in history] == ["set", "reset"]
        assert history[0]["who"] == "127.0.0.1"
        undone = server.ask("POST", "/connectors/shop/offsets/undo?dry_run=true")
        assert (undone["undoes"], undone["after"]) == (2, shown["offsets"])
        assert server.ask("GET", "/connectors/shop/offsets") == {"offsets": []}
        server.ask("POST", "/connectors/shop/offsets/undo", headers={"tailrace-user": "ann\x07"})
        server.ask("PATCH", "/connectors/shop/offsets", shown, auth=("bob", "no token"))
        who = [each["who"] for each in server.ask("GET", "/connectors/shop/offsets/history")]
        assert who[-2:] == ["ann@127.0.0.1", "bob@127.0.0.1"]
        assert server.ask("GET", "/connectors/shop/offsets") == shown
        server.ask("DELETE", "/connectors/shop/offsets")
        execute(database, "insert into t values (2)")
        server.ask("PUT", "/connectors/shop/resume", status=202)
        wait_until(lambda: server.ask("GET", "/connectors/shop/tables/t")["copies"] == 2, 60)
        wait_until(lambda: server.ask("GET", "/connectors/shop/tables/t")["state"] == "live", 60)
        wait_until(lambda: tailrace.arrow(lake, "public.t", published=True).num_rows == 2, 60)
        assert_equal(database, lake, "public.t")
        server.create("new", config_for(database), initial_state="STOPPED")
        assert server.ask("GET", "/connectors/new/offsets") == {"offsets": []}
        server.ask("PATCH", "/connectors/new/offsets", shown, 400)
        server.ask("GET", "/connectors/none/offsets", status=404)
        assert server.ask("GET", "/connectors/shop/offsets/schema")["title"] == "offsets of postgres"


def test_offsets_of_every_kind_are_described_checked_and_changed(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:
        listed = server.ask("GET", "/offsets/layouts")
        assert [each["kind"] for each in listed] == list(KINDS)
        for kind in KINDS:
            schema = server.ask("GET", f"/offsets/layouts/{kind}")
            body = {"offsets": schema["examples"]}
            checked = server.ask("POST", f"/offsets/layouts/{kind}/check", body)
            assert (checked["valid"], len(checked["upgraded"]["offsets"])) == (True, 1), checked
        server.ask("GET", "/offsets/layouts/redis", status=404)
        server.ask("POST", "/offsets/layouts/redis/check", body, 404)
        wrong = {"offsets": [{"partition": {"server": "s"}, "offset": {"scn": "x", "commit_scn": "1:1:"}}]}
        (fault,) = server.ask("POST", "/offsets/layouts/oracle/check", wrong)["faults"]
        assert (fault["field"], fault["rule"]) == ("offsets[0].offset.scn", "scn")
        node = {"partition": {"logicalName": "shop", "nodeId": "n1"}, "offset": {"cycling.riders": ":-1"}}
        change = {"offsets": [node], "set": {"cycling.races": "CommitLog-7-1.log:5"}, "remove": ["cycling.riders"]}
        changed = server.ask("POST", "/offsets/layouts/cassandra/edit", change)
        assert changed["offsets"] == [node | {"offset": {"cycling.races": "CommitLog-7-1.log:5"}}]
        assert [each["change"] for each in changed["differences"]] == ["added", "removed"]
        refused = server.ask(
            "POST", "/offsets/layouts/cassandra/edit", change | {"set": {"cycling.races": "x"}, "remove": []}, 400
        )
        assert "offsets[0].offset.cycling.races 'x' is not a place" in refused["message"]
        assert "[place]" in refused["message"]


def test_an_import_needs_a_slot_that_is_there_and_offsets_that_can_be_read(database: str, tmp_path: Path) -> None:
    path, stored = "/connectors/shop/offsets/import", {"partition": {"server": "old"}, "offset": {"lsn": 5}}
    with serving(tmp_path / "home") as server:
        server.create("shop", config_for(database), initial_state="STOPPED")
        assert "names no slot" in server.ask("POST", path, stored, 400)["message"]
        server.ask("PATCH", "/connectors/shop/config", {"slot.name": "old_slot"}, 200)
        execute(database, "create table t (id int primary key); create publication dbz_publication for table t")
        assert "there is no slot old_slot" in server.ask("POST", path, stored, 400)["message"]
        assert "not offsets" in server.ask("POST", path, status=400, content=b"\xff\x00")["message"]
        server.ask("POST", "/connectors/none/offsets/import", stored, 404)
        with psycopg.connect(database) as conn:
            conn.execute("select pg_create_logical_replication_slot('old_slot', 'pgoutput')")
        wrong = stored | {"offset": {"lsn": "5"}}
        assert "offset.lsn '5' is not a whole number" in server.ask("POST", path, wrong, 400)["message"]
        planned = server.ask("POST", f"{path}?dry_run=true", stored)
        assert (planned["server"], planned["has_lake"]) == ("old", False)
        assert not server.supervisor.lake_home("shop").lake.exists()
        server.ask("POST", path, stored, 409, headers={"if-match": '"1"'})
        server.ask("POST", path, stored, 200, headers={"if-match": '"0"'})
        server.ask("PUT", "/connectors/shop/resume", status=202)
        server.wait_for("shop", "RUNNING")
        assert "STOPPED state" in server.ask("POST", path, stored, 400)["message"]
