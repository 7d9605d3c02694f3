"""A server and its connectors under any sequence of orders and crashes, next to a model that knows only what was asked.

Everything is real: `tailrace serve` in a process of its own, its capture processes and Postgres. What is killed is
killed with SIGKILL. The model keeps the target, the configuration, how often the offsets were
edited and the rows that were written; after each step the server must show the first three, and at the end each lake
must equal its source. Beside the connector that is driven there is one that no one touches: it must not notice.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from demo.embedded import EmbeddedPostgres
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.running import captures
from tests.serving import Process, config_for, process

from tailrace.lake.home import LakeHome
from tailrace.model.table_state import TableState

DRIVEN, QUIET = "driven", "quiet"
CAPTURE_KILLS_MAX = 3
"""More within a minute are a definite error, by design."""
ON_THE_WAY = {"RUNNING", "UNASSIGNED", "RESTARTING"}
"""What may be shown besides a target itself. Nothing that is done here makes a connector fail."""
DONE, REFUSED = 200, 400
WAIT_SECONDS = 120.0


class LifeMachine(RuleBasedStateMachine):
    """One server, two connectors. `postgres` is set by the test."""

    postgres: EmbeddedPostgres
    database_number = 0

    @initialize()
    def begin(self) -> None:
        self.stack = ExitStack()
        type(self).database_number += 1
        self.names = {each: f"life_{each}_{self.database_number}" for each in (DRIVEN, QUIET)}
        self.dsns = {each: self.postgres.create_database(name) for each, name in self.names.items()}
        for dsn in self.dsns.values():
            execute(dsn, "create table t (id int primary key, v int); insert into t values (0, 0)")
        self.home = Path(self.stack.enter_context(TemporaryDirectory(prefix="tailrace-home-")))
        self.server = self._serve()
        self.config = config_for(self.dsns[DRIVEN], lake_path=str(self.home / "driven-lake"))
        self.server.create(DRIVEN, self.config)
        self.server.create(QUIET, config_for(self.dsns[QUIET], lake_path=str(self.home / "quiet-lake")))
        self.target, self.rows, self.kills, self.exists = "RUNNING", 0, 0, True
        self.edits, self.disturbed = 0, False
        self.server.wait_for(QUIET, "RUNNING", WAIT_SECONDS)

    def _serve(self) -> Process:
        self.server_stack = ExitStack()
        return self.server_stack.enter_context(process(self.home))

    def _put(self, path: str, *statuses: int) -> Any:
        return self.server.ask("PUT", f"/connectors/{DRIVEN}/{path}", status=statuses)

    @rule()
    def write(self) -> None:
        self.rows += 1
        for dsn in self.dsns.values():
            execute(
                dsn, f"insert into t values ({self.rows}, 0); update t set v = v + 1 where id % 3 = {self.rows % 3}"
            )

    @precondition(lambda self: self.exists)
    @rule(order=st.sampled_from([("pause", 202, "PAUSED"), ("resume", 202, "RUNNING"), ("stop", 204, "STOPPED")]))
    def order(self, order: tuple[str, int, str]) -> None:
        path, status, self.target = order
        self._put(path, status)

    @precondition(lambda self: self.exists)
    @rule(tasks=st.booleans())
    def restart(self, tasks: bool) -> None:
        query = "?includeTasks=true" if tasks else ""
        self.server.ask("POST", f"/connectors/{DRIVEN}/restart{query}", status=(202, 204))

    @precondition(lambda self: self.exists)
    @rule(readers=st.integers(1, 9))
    def configure(self, readers: int) -> None:
        self.config = self.config | {"readers.max": str(readers)}
        self.server.ask("PUT", f"/connectors/{DRIVEN}/config", self.config, 200)

    @precondition(lambda self: self.exists)
    @rule(readers=st.none() | st.integers(1, 9), is_late=st.booleans())
    def patch(self, readers: int | None, is_late: bool) -> None:
        """An editor who has seen an older configuration changes nothing."""
        path = f"/connectors/{DRIVEN}/config"
        tag = '"0"' if is_late else self.server.http.get(path).headers["etag"]
        change = {"readers.max": None if readers is None else str(readers)}
        answer = self.server.http.patch(path, json=change, headers={"if-match": tag})
        assert answer.status_code == (409 if is_late else 200), answer.text
        if not is_late:
            kept = {name: value for name, value in self.config.items() if name != "readers.max"}
            self.config = kept | {name: value for name, value in change.items() if value is not None}

    @precondition(lambda self: self.exists)
    @rule()
    def reset_offsets(self) -> None:
        self._edit("DELETE", "", None)

    @precondition(lambda self: self.exists)
    @rule(writes=st.integers(0, 3))
    def set_offsets_forward(self, writes: int) -> None:
        """What is skipped is copied: the end shows it."""
        for _ in range(writes):
            self.write()
        self._set_offsets(wal_end(self.dsns[DRIVEN]))

    @precondition(lambda self: self.exists)
    @rule()
    def set_offsets_to_what_is_shown(self) -> None:
        self._edit("PATCH", "", self.server.ask("GET", f"/connectors/{DRIVEN}/offsets"), (DONE, REFUSED))

    @precondition(lambda self: self.exists)
    @rule(bytes_back=st.sampled_from([1, 1000, 100_000]))
    def set_offsets_back(self, bytes_back: int) -> None:
        """As far as the slot has it still; refused where it has not."""
        shown = self.server.ask("GET", f"/connectors/{DRIVEN}/offsets")["offsets"]
        if shown and shown[0]["offset"].get("lsn"):
            self._set_offsets(max(1, shown[0]["offset"]["lsn"] - bytes_back), (DONE, REFUSED))

    @precondition(lambda self: self.exists)
    @rule()
    def undo_an_edit(self) -> None:
        self._edit("POST", "/undo", None, (DONE, REFUSED))

    def _set_offsets(self, lsn: int, answers: tuple[int, ...] = (DONE,)) -> None:
        entry = {"partition": {"server": DRIVEN}, "offset": {"lsn": lsn}}
        self._edit("PATCH", "", {"offsets": [entry]}, answers)

    def _edit(self, method: str, path: str, body: Any, answers: tuple[int, ...] = (DONE,)) -> None:
        """Refused unless it is stopped; made when it is. A dry run before it leaves no trace."""
        before = self.server.status(DRIVEN)["connector"]["state"]
        has_lake = self._has_lake()
        address = f"/connectors/{DRIVEN}/offsets{path}"
        assert self.server.http.request(method, f"{address}?dry_run=true", json=body).status_code < 500
        answer = self.server.http.request(method, address, json=body)
        if before == "STOPPED" and has_lake:
            assert answer.status_code in answers, answer.text
        elif self.target != "STOPPED":
            assert answer.status_code == 409, answer.text
        assert answer.status_code in (200, 400, 409), answer.text
        self.edits += answer.status_code == DONE

    def _has_lake(self) -> bool:
        return LakeHome(self.home / "driven-lake").source() is not None

    @precondition(lambda self: self.exists)
    @rule()
    def remove(self) -> None:
        self.server.ask("DELETE", f"/connectors/{DRIVEN}", status=204)
        self.exists = False

    @precondition(lambda self: not self.exists)
    @rule(state=st.sampled_from(["RUNNING", "PAUSED", "STOPPED"]))
    def make_again(self, state: str) -> None:
        self.server.create(DRIVEN, self.config, initial_state=state)
        self.exists, self.target = True, state

    @precondition(lambda self: self.kills < CAPTURE_KILLS_MAX)
    @rule()
    def kill_a_capture(self) -> None:
        # Counted also where none runs: what is drawn next must not depend on that.
        self.kills += 1
        for each in captures(self.server.process.pid)[:1]:
            os.kill(each.pid, signal.SIGKILL)

    @rule()
    def kill_the_server(self) -> None:
        self.server_stack.close()
        self.server = self._serve()

    @rule(is_polite=st.booleans())
    def restart_postgres(self, is_polite: bool) -> None:
        self.disturbed = True
        if is_polite:
            self.postgres.restart()
        else:
            self.postgres.kill()
            self.postgres.start()

    @invariant()
    def nothing_is_forgotten(self) -> None:
        if not hasattr(self, "server"):
            return
        assert self.server.ask("GET", "/connectors") == sorted([QUIET, *([DRIVEN] if self.exists else [])])
        quiet = self.server.status(QUIET)["connector"]
        assert quiet["state"] in ON_THE_WAY, quiet
        assert self.disturbed or "trace" not in quiet, quiet
        if self.exists:
            shown = self.server.ask("GET", f"/connectors/{DRIVEN}/config")
            assert shown == self.config | {"name": DRIVEN}
            status = self.server.status(DRIVEN)
            assert status["connector"]["state"] in {self.target} | ON_THE_WAY, (self.target, status)
            assert self.disturbed or "trace" not in status["connector"], status
            history = self.server.ask("GET", f"/connectors/{DRIVEN}/offsets/history")
            assert [each["version"] for each in history] == list(range(1, self.edits + 1))

    def teardown(self) -> None:
        if not hasattr(self, "server"):
            return
        try:
            if not self.exists:
                self.make_again("RUNNING")
            for state in ("STOPPED", "PAUSED", "RUNNING"):
                if self.target == state:
                    wait_until(
                        lambda state=state: self.server.status(DRIVEN)["connector"]["state"] == state, WAIT_SECONDS
                    )
            self._put("resume", 202)
            for name in (DRIVEN, QUIET):
                self.server.wait_for(name, "RUNNING", WAIT_SECONDS)
                lake = self.home / f"{name}-lake"
                wait_until(lambda lake=lake: _is_level(lake, self.rows + 1), WAIT_SECONDS)
                assert_equal(self.dsns[name], lake, "public.t")
                self.server.ask("DELETE", f"/connectors/{name}?drop_source=true", status=204)
        finally:
            self.server_stack.close()
            self.stack.close()
            for name in self.names.values():
                self.postgres.drop_database(name)


def wal_end(dsn: str) -> int:
    with psycopg.connect(dsn) as conn:
        (found,) = conn.execute("select pg_current_wal_insert_lsn() - '0/0'").fetchone() or (0,)
    return int(found)


def _is_level(lake: Path, rows: int) -> bool:
    """Whether the newest cut has all rows, and the table is where it should be."""
    import tailrace

    home = LakeHome(lake)
    if any(record.state is not TableState.LIVE for record in home.tables.load().values()):
        return False
    return _tried(lambda: tailrace.arrow(lake, "public.t", published=True).num_rows == rows)


def _tried(condition: Callable[[], bool]) -> bool:
    from tailrace.errors import DefiniteError

    try:
        return condition()
    except DefiniteError:
        # Copied again at this moment.
        return False
