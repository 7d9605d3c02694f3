"""KIP-875 over REST: offsets are read always and changed only while the connector is stopped."""

from __future__ import annotations

from pathlib import Path

from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.serving import config_for, serving

import tailrace
from tailrace.lake.home import LakeHome


def test_offsets_are_shown_edited_reset_and_taken_back(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    with serving(tmp_path / "home") as server:
        server.create("shop", config_for(database, topic_prefix="shop_server"))
        lake = server.supervisor.lake_home("shop").path
        wait_until(lambda: LakeHome(lake).cuts.newest() is not None, 60)
        shown = server.ask("GET", "/connectors/shop/offsets")
        assert [each["partition"] for each in shown["offsets"]] == [{"server": "shop_server"}]
        for method, path in [("PATCH", ""), ("DELETE", ""), ("POST", "/undo")]:
            refused = server.ask(method, f"/connectors/shop/offsets{path}", shown if method == "PATCH" else None, 409)
            assert "must be in the STOPPED state" in refused["message"]
        server.ask("PUT", "/connectors/shop/stop", status=204)
        server.wait_for("shop", "STOPPED")
        shown = server.ask("GET", "/connectors/shop/offsets")
        dry = server.ask("PATCH", "/connectors/shop/offsets?dry_run=true", shown)
        assert (dry["possible"], dry["tables_to_copy"]) == (True, [])
        nonsense = {"offsets": [{"partition": {"server": "shop_server"}, "offset": {"lsn": "many"}}]}
        assert "lsn" in server.ask("PATCH", "/connectors/shop/offsets", nonsense, 400)["message"]
        server.ask("PATCH", "/connectors/shop/offsets", {"nothing": 1}, 400)
        assert "altered" in server.ask("PATCH", "/connectors/shop/offsets", shown)["message"]
        tag = server.http.get("/connectors/shop/offsets").headers["etag"]
        assert "reset" in server.ask("DELETE", "/connectors/shop/offsets", headers={"if-match": tag})["message"]
        server.ask("DELETE", "/connectors/shop/offsets", status=409, headers={"if-match": tag})
        history = server.ask("GET", "/connectors/shop/offsets/history")
        assert [each["kind"] for each in history] == ["set", "reset"]
        assert history[0]["who"] == "127.0.0.1"
        server.ask("POST", "/connectors/shop/offsets/undo")
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
        server.ask("PATCH", "/connectors/new/offsets", shown, 409)
        server.ask("GET", "/connectors/none/offsets", status=404)
        assert server.ask("GET", "/connectors/shop/offsets/schema")["title"] == "offsets of postgres"
