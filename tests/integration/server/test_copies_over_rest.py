"""A copy that is paused or stopped over REST reads nothing more, and one that is resumed does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Served, config_for, serving

from tailrace.connector.events import StreamProgressed

ROWS = 20_000
COPIES = "/connectors/shop/snapshots"
SCRIPT = f"""
create table t (id int primary key);
create table large (id int primary key);
insert into large select generate_series(1, {ROWS});
"""


def test_a_copy_stops_reading_when_it_is_paused_or_stopped_and_continues_when_it_is_resumed(
    database: str, tmp_path: Path
) -> None:
    execute(database, SCRIPT)
    small = {"incremental.snapshot.chunk.size": "5", "readers.max": "1"}
    with serving(tmp_path / "home") as server:
        server.create("shop", config_for(database) | small)
        wait_until(lambda: _states(server) == {"live"}, 60)
        server.ask("POST", COPIES, {"data-collections": ["public.large"], "id": "copy"}, 202)
        wait_until(lambda: _rows(server) > 0, 60)

        server.ask("POST", f"{COPIES}/pause", status=202)
        wait_until(lambda: _signal(server) == "paused", 30)
        paused = _still(server, database)
        assert 0 < paused < ROWS
        assert server.ask("GET", COPIES)["copying"] == ["public.large"]

        server.ask("POST", f"{COPIES}/resume", status=202)
        wait_until(lambda: _rows(server) > paused, 60)
        assert _signal(server) == "running"

        server.ask("POST", f"{COPIES}/stop", status=202)
        wait_until(lambda: _signal(server) == "stopped", 30)
        assert _still(server, database) < ROWS
        stopped = server.ask("GET", "/connectors/shop/tables/public.large")
        assert (stopped["state"], server.ask("GET", COPIES)["copying"]) == ("errored", [])

        asked, *first = server.ask("GET", f"{COPIES}/runs")
        assert (asked["signal"], asked["channel"], asked["type"]) == ("copy", "request", "incremental")
        assert (asked["state"], [each["table"] for each in asked["tables"]]) == ("stopped", ["public.large"])
        assert asked["tables"][0]["step"] == "aborted"
        assert paused <= asked["rows"] < ROWS
        assert {(each["signal"], each["state"], each["ended"] is None) for each in first} == {(None, "done", False)}
        assert server.ask("GET", f"{COPIES}/runs?limit=1") == [asked]
        told = [each for each in server.ask("GET", COPIES)["notifications"] if each["table"] == "public.large"]
        assert max(each["held_seconds_max"] for each in told) > 0
        server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)


def test_a_dry_run_says_what_a_copy_would_be_and_sends_nothing(database: str, tmp_path: Path) -> None:
    execute(database, SCRIPT + "analyze large; analyze t")
    plan = f"{COPIES}?dry_run=true"
    with serving(tmp_path / "home") as server:
        server.create("shop", config_for(database))
        server.create("idle", config_for(database), initial_state="STOPPED")
        wait_until(lambda: _states(server) == {"live"}, 60)
        filtered = {"data-collection": "public.large", "filter": "id > 5"}
        body = {"data-collections": ["public\\..*", "none"], "additional-conditions": [filtered]}
        found = server.ask("POST", plan, body, 200)
        assert (found["possible"], found["problem"], found["source_error"]) == (True, None, None)
        assert found["missing"] == "no table matches none"
        large, small = found["tables"]
        assert (large["table"], large["state"], large["rows_estimated"]) == ("public.large", "live", ROWS)
        assert large["sql"] == "select * from public.large where (id > 5)"
        assert (small["rows_estimated"], small["condition"], small["sql"]) == (0, None, "select * from public.t")
        assert found["rows_estimated"] == ROWS

        for filter_ in ("id > 'x'", "nonsense(", "id = 1; drop table t", "id = '\x00'"):
            wrong = {"data-collections": ["public.large"], "additional-conditions": [filtered | {"filter": filter_}]}
            answer = server.ask("POST", plan, wrong, (200, 400))
            assert not answer.get("possible"), (filter_, answer)
        unordered = server.ask("POST", plan, {"data-collections": ["public.large"], "surrogate-key": "none"}, 200)
        assert "none" in unordered["problem"]
        nothing = server.ask("POST", plan, {"data-collections": ["nope"]}, 200)
        assert (nothing["possible"], nothing["problem"]) == (False, "nothing would be copied: no table matches nope")
        server.ask("POST", plan, {"data-collections": []}, 400)
        server.ask("POST", plan, {"data-collections": ["public.t"], "type": "odd"}, 400)
        server.ask("POST", "/connectors/idle/snapshots?dry_run=true", {"data-collections": ["public.t"]}, 409)
        server.ask("POST", f"{COPIES}/pause", {"type": "nonsense"}, 400)
        assert server.ask("GET", "/connectors/shop/signals") == []
        server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)


def _states(server: Served) -> set[str]:
    return {each["state"] for each in server.ask("GET", "/connectors/shop/tables")}


def _signal(server: Served) -> str:
    return str(server.ask("GET", "/connectors/shop/signals/copy")["state"])


def _rows(server: Served) -> int:
    """How many the copy has read."""
    found: list[dict[str, Any]] = server.ask("GET", COPIES)["progress"]
    return max((each["rows"] for each in found if each["table"] == "public.large"), default=0)


def _still(server: Served, database: str) -> int:
    """How many rows have been read, now that nothing is read while the stream publishes other changes."""
    shown: list[int] = []
    server.supervisor.hub.subscribe(
        lambda _, told: shown.append(told.cut.seq) if isinstance(told, StreamProgressed) else None
    )

    def passes() -> int:
        """The stream gets further, and how far all is has been told after that."""
        execute(database, "insert into t select coalesce(max(id), 0) + 1 from t")
        seq = shown[-1] if shown else 0
        wait_until(lambda: bool(shown) and shown[-1] > seq, 30)
        return _rows(server)

    # The rows that were being read are read to their end, however long that takes on a busy machine.
    wait_until(lambda: not (_is_reading(database) or _has_rows_to_publish(server)), 60)
    passes()
    read = [passes() for _ in range(4)]
    assert len(set(read)) == 1, read
    return read[-1]


def _is_reading(database: str) -> bool:
    """Whether a session holds a state of the source for a window."""
    with psycopg.connect(database) as conn:
        holders = "select from pg_stat_activity where datname = current_database() and state ~ 'idle in transaction'"
        return conn.execute(holders).rowcount > 0


def _has_rows_to_publish(server: Served) -> bool:
    """Whether rows of a window are not in the lake's table yet."""
    home = server.supervisor.lake("shop")
    return home.windows.exists() and any(path.is_file() for path in home.windows.rglob("*"))
