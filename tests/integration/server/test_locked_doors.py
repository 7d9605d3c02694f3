"""What a configuration or a request cannot do, whoever sends it: get a secret or a file back, or have one sent on."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import Served, config_for, process, serving

from tailrace.server.supervisor.asking import ASKING_MAX

SECRET = "env-canary-4711"
PASSWORD = "s3cr3t-canary"
NOWHERE = "postgresql://ann@127.0.0.1:1/shop"
"""Where nothing answers."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("doors") / "home") as served:
        yield served


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "passwd"
    path.write_text("root:x:0:0:canary-of-root:/root:/bin/bash\nann canary-of-ann\n")
    return path


@pytest.mark.parametrize("key", ["database.user", "database.dbname", "database.hostname", "lake.path"])
def test_what_a_reference_leads_to_is_in_no_status_log_or_answer(
    database: str, tmp_path: Path, secret_file: Path, key: str
) -> None:
    home = tmp_path / "home"
    config = config_for(database)
    with process(home, CANARY_VARIABLE=SECRET) as server:
        seen = []
        for number, reference in enumerate(("${env:CANARY_VARIABLE}", f"${{file:{secret_file}}}")):
            name = f"c{number}"
            body = {"name": name, "config": config | {key: reference}}
            answer = server.http.post("/connectors", json=body)
            seen.append(answer.text)
            if answer.status_code == 201:
                wait_until(lambda name=name: "trace" in server.status(name)["connector"], 60)
                seen += [server.http.get(path).text for path in ("/health/ready", f"/connectors/{name}/status")]
            seen.append(str(server.ask("PUT", "/connector-plugins/PostgresConnector/config/validate", body["config"])))
        seen.append(str(server.ask("POST", "/sql", {"sql": "show sources"})))
        server.process.terminate()
        server.process.wait(60)
    seen += [path.read_text() for path in home.rglob("*.log")]
    seen += server.printed.values()
    assert "********" in "".join(seen)
    assert "canary" not in "".join(seen).replace("CANARY_VARIABLE", "").lower()


@pytest.mark.parametrize("key", ["topic.prefix", "name"])
def test_what_is_shown_as_it_is_cannot_be_a_reference(server: Served, key: str) -> None:
    name = "${env:PATH}" if key == "name" else "shown"
    body = {"name": name, "config": config_for(NOWHERE) | {key: "${env:PATH}"}, "initial_state": "STOPPED"}
    assert "may be a reference" in server.ask("POST", "/connectors", body, 400)["message"]


def test_a_file_of_signals_lies_where_the_server_says(tmp_path: Path) -> None:
    home, folder, elsewhere = tmp_path / "home", tmp_path / "signals", tmp_path / "elsewhere"
    for each in (folder, elsewhere):
        each.mkdir()
    (folder / "way-out").symlink_to(elsewhere)
    with serving(home, signal_folder=folder) as server:
        for number, (path, status) in enumerate(
            [
                ("/etc/passwd", 400),
                (f"{folder}/../elsewhere/s", 400),
                (f"{folder}/way-out/s", 400),
                ("signals.jsonl", 400),
                (f"{folder}/s", 201),
                (f"{home}/s", 201),
            ]
        ):
            config = config_for(NOWHERE, signal_file=path)
            body = {"name": f"c{number}", "config": config, "initial_state": "STOPPED"}
            answer = server.ask("POST", "/connectors", body, status)
            assert status == 201 or "--signal-folder" in answer["message"]


def test_lines_of_a_signal_file_that_are_no_signals_are_not_shown(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key)")
    home = tmp_path / "home"
    home.mkdir()
    lines = [SECRET, f'"{SECRET}"', f'[1, "{SECRET}"]', '{"id": "last", "type": "pause-snapshot"}', ""]
    (home / "signals").write_text("\n".join(lines))
    with serving(home) as server:
        server.create("shop", config_for(database, signal_file=str(home / "signals")))
        wait_until(lambda: len(_signals(server)) == 4, 60)
        assert [each["state"] for each in _signals(server)][:3] == ["rejected"] * 3
        assert SECRET not in str(_signals(server))
        server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)


def _signals(server: Served) -> list[Any]:
    found: list[Any] = server.ask("GET", "/connectors/shop/signals")
    return found


class Greedy:
    """A server that speaks as much of Postgres's protocol as it takes to be sent a password."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self.port = str(listening.getsockname()[1])
        self.asked = 0
        self.got: list[bytes] = []

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(10)
                try:
                    self._ask(connection)
                except OSError:
                    continue

    def _ask(self, connection: socket.socket) -> None:
        while True:
            length, code = struct.unpack("!ii", connection.recv(8, socket.MSG_WAITALL))
            connection.recv(length - 8, socket.MSG_WAITALL)
            if code >> 16 == 3:
                break
            connection.sendall(b"N")
        connection.sendall(struct.pack("!cii", b"R", 8, 3))
        self.asked += 1
        if sent := connection.recv(1000):
            self.got.append(sent)


@contextmanager
def greedy() -> Iterator[Greedy]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = Greedy(listening)
        thread = threading.Thread(target=found.run)
        thread.start()
        try:
            yield found
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_stored_password_is_not_sent_to_another_server(server: Served) -> None:
    with greedy() as other:
        server.create("kept", config_for(NOWHERE, database_password=PASSWORD))
        shown = server.ask("GET", "/connectors/kept/config")
        path = "/connectors/kept/config"
        for change in (
            {"database.port": other.port},
            {"database.hostname": "localhost"},
            {"database.user": "bob"},
            {"database.sslmode": "require"},
            {"database.sslrootcert": "/mine.pem"},
        ):
            for method, body in (("PATCH", change), ("PUT", shown | change)):
                refused = server.ask(method, path, body, 400)
                assert "hint: give the password again with it: database.password" in refused["message"]
        sql = f"alter source kept set (database.port = '{other.port}')"
        assert "password again" in server.ask("POST", "/sql", {"sql": sql}, 400)["message"]
        assert server.ask("GET", path) == shown
        # What does not concern who gets it is free, and so is whoever knows it.
        server.ask("PATCH", path, {"database.dbname": "other"}, 200)
        server.ask("PATCH", path, {"database.port": other.port, "database.password": PASSWORD}, 200)
        server.ask("POST", "/sql", {"sql": "alter source kept set (database.user = 'bob', database.password = 'x')"})
        server.ask("DELETE", "/connectors/kept", status=204)


def test_no_password_is_sent_in_clear_text_without_tls(server: Served) -> None:
    with greedy() as other:
        server.create("clear", config_for(f"postgresql://ann@127.0.0.1:{other.port}/shop", database_password=PASSWORD))
        trace = server.wait_for("clear", "FAILED")["connector"]["trace"]
        assert "wants the password in clear text" in trace
        assert "sslmode=require" in trace
        assert other.asked
        assert other.got == []
        server.ask("DELETE", "/connectors/clear", status=204)


def test_a_lake_stays_taken_when_the_secret_that_names_it_is_gone(server: Served, tmp_path: Path) -> None:
    """Others' configurations are not read again for each new one."""
    secret = tmp_path / "path"
    secret.write_text(str(tmp_path / "lake"))
    server.create("first", config_for(NOWHERE) | {"lake.path": f"${{file:{secret}}}"}, initial_state="STOPPED")
    secret.unlink()
    body = {"name": "second", "config": config_for(NOWHERE, lake_path=str(tmp_path / "lake"))}
    refused = server.ask("POST", "/connectors", body, 409)["message"]
    assert "connector first has its lake in ********" in refused
    server.ask("DELETE", "/connectors/first", status=204)
    server.create("second", body["config"], initial_state="STOPPED")


@pytest.mark.parametrize("is_published_by_hand", [False, True])
def test_the_servers_own_state_is_copied_into_no_lake(
    database: str, tmp_path: Path, is_published_by_hand: bool
) -> None:
    execute(database, "create table t (id int primary key); create schema app")
    execute(database, "create table app.tailrace_history (id int primary key)")
    more = {"publication_name": "everything"} if is_published_by_hand else {}
    if is_published_by_hand:
        execute(database, "create publication everything for all tables")
    with serving(tmp_path / "home", state_url=database) as server:
        server.create("shop", config_for(database, database_password=PASSWORD, **more))
        tables = "/connectors/shop/tables"
        wait_until(lambda: {each["state"] for each in server.ask("GET", tables)} == {"live"}, 60)
        server.ask("PATCH", "/connectors/shop/config", {"readers.max": "3"}, 200)
        execute(database, "insert into t values (1)")
        wait_until(lambda: _rows(server) == 1, 60)
        # A table of someone else's that happens to have the name of one is copied.
        assert [each["table"] for each in server.ask("GET", tables)] == ["app.tailrace_history", "public.t"]
        if not is_published_by_hand:
            # What a publication of someone else's sends is in the log, which only its owner may read.
            lake = server.supervisor.lake_home("shop").lake
            files = [path for path in lake.rglob("*") if path.is_file()]
            assert not [path for path in files if PASSWORD.encode() in path.read_bytes()]
        server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)


def _rows(server: Served) -> int:
    found = server.ask("POST", "/query", {"connector": "shop", "sql": "select count(*) from t"}, (200, 400, 409))
    return int(found["rows"][0][0]) if "rows" in found else -1


def test_what_takes_too_much_to_read_is_refused(server: Served) -> None:
    many = {f"no.such.{number}": "x" for number in range(501)}
    validate = "/connector-plugins/PostgresConnector/config/validate"
    assert "at most 500 keys" in server.ask("PUT", validate, many, 400)["message"]
    assert "at most 500 keys" in server.ask("POST", "/connectors", {"name": "m", "config": many}, 400)["message"]
    server.create("few", config_for(NOWHERE), initial_state="STOPPED")
    assert "at most 500 keys" in server.ask("PATCH", "/connectors/few/config", many, 400)["message"]
    nested = {"table.include.list": "(" * 3000 + "a" + ")" * 3000}
    checked = server.ask("PUT", validate, config_for(NOWHERE) | nested, 200)
    assert "nested deeper than 50" in str(checked)
    deep: Any = "x"
    for _ in range(100):
        deep = {"a": deep}
    assert "nested deeper than 20 levels" in server.ask("PUT", validate, {"b": deep}, 400)["message"]
    assert "200 statements at most" in server.ask("POST", "/sql", {"sql": "show sources;" * 201}, 400)["message"]
    assert len(server.ask("POST", "/sql", {"sql": "show sources;" * 200})["results"]) == 200
    long = config_for(NOWHERE) | {"database.hostname": f"{'a' * 64}.example"}
    assert "at most 63 characters" in server.ask("POST", "/connectors", {"name": "m", "config": long}, 400)["message"]
    server.ask("DELETE", "/connectors/few", status=204)


def test_sources_that_do_not_answer_hold_up_no_one_else(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key)")
    with serving(tmp_path / "home") as server, socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        server.create("shop", config_for(database))
        wait_until(lambda: _rows(server) == 0, 60)
        server.ask("PUT", "/connectors/shop/stop", status=204)
        server.wait_for("shop", "STOPPED")
        offsets = server.ask("GET", "/connectors/shop/offsets")
        server.ask("PATCH", "/connectors/shop/config", {"database.port": str(silent.getsockname()[1])}, 200)
        path = "/connectors/shop/offsets?dry_run=true"
        with ThreadPoolExecutor(60) as pool:
            asked = [pool.submit(server.http.patch, path, json=offsets) for _ in range(60)]
            assert len(server.ask("GET", "/connectors/shop/tables")) == 1
            # Most have not ended: the source has answered no one yet.
            statuses = [each.result(60).status_code for each in asked]
        assert statuses.count(503) == ASKING_MAX
        assert statuses.count(429) == 60 - ASKING_MAX
        server.ask("PATCH", "/connectors/shop/config", {"database.port": config_for(database)["database.port"]}, 200)
        server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)


def test_what_a_killed_server_left_is_removed_by_the_next(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with process(home) as server:
        left = home / "scratch" / "left"
        left.write_text("of Spark")
        server.process.kill()
        server.process.wait()
    with process(home) as server:
        assert server.ask("GET", "/connectors") == []
        assert list((home / "scratch").iterdir()) == []
