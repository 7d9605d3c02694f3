"""What a server says about itself: JSON lines where that is asked for, and never a value of a row."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import config_for, process

CANARY = "canary-4711"
CANARY_DATE = "23456-07-08"
SCRIPT = f"""
create table t (id text primary key, v text);
insert into t values ('{CANARY}-key', '{CANARY}');
create table dated (at date primary key, v text);
insert into dated values ('2024-01-01', '{CANARY}');
"""


def test_no_value_of_a_row_is_in_any_message_and_messages_can_be_json(database: str, tmp_path: Path) -> None:
    execute(database, SCRIPT)
    home = tmp_path / "home"
    with process(home, "--log-json") as server:
        server.create("shop", config_for(database))
        tables = "/connectors/shop/tables"
        wait_until(lambda: {each["state"] for each in server.ask("GET", tables)} == {"live"}, 60)
        # A table that is copied again because of a value in it, a query that fails because of one, and requests that
        # make none.
        execute(database, f"insert into dated values ('{CANARY_DATE}', '{CANARY}')")
        execute(database, f"update t set v = '{CANARY}-again'; insert into t values ('{CANARY}-2', null)")
        wait_until(lambda: {("live", 2)} <= {(t["state"], t["copies"]) for t in server.ask("GET", tables)}, 60)
        failing = {"connector": "shop", "sql": "select cast(v as int) from t"}
        assert CANARY in server.ask("POST", "/query", failing, 400)["message"]
        server.ask("POST", "/connectors/shop/signals", {"type": "nonsense", "data": {"v": 1}}, 400)
        server.ask("POST", "/connectors/shop/restart", status=204)
        server.wait_for("shop", "RUNNING")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    lines = [json.loads(line) for line in server.printed["stderr"].splitlines()]
    assert {"StateChanged", "CutPublished", "TableChanged"} <= {each["message"] for each in lines}
    assert all({"time", "level", "logger", "message"} <= set(each) for each in lines)
    written = {path.name: path.read_text() for path in home.rglob("*.log")}
    assert "tailrace.log" in written
    assert "resyncing" in written["tailrace.log"]
    for name, text in (written | server.printed).items():
        assert CANARY not in text, name
        assert CANARY_DATE not in text, name
