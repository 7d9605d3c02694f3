"""Kafka Connect's own client drives our server, offsets included, and its own classes read every answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import CLASS, config_for, serving

from tailrace.lake.home import LakeHome

ENTITIES = "org.apache.kafka.connect.runtime.rest.entities"
MAP = "java.util.LinkedHashMap"


class KafkaConnect:
    """The client, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = ""

    def ask(self, method: str, path: str, body: Any = None, sent: str = "", received: str = "") -> tuple[int, Any]:
        asked = {"method": method, "url": self.address + path, "body": body, "sent": sent, "received": received}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        found = json.loads(self._process.stdout.readline())
        return found["status"], found["body"]

    def get(self, path: str, entity: str) -> Any:
        """Read by Kafka Connect's class, which refuses a field that it does not know, and written by it again."""
        status, body = self.ask("GET", path, received=entity if "." in entity else f"{ENTITIES}.{entity}")
        assert status == 200
        return body


@pytest.fixture
def kafka() -> Iterator[KafkaConnect]:
    command = [sys.executable, "-m", "tests.kafka_rest"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield KafkaConnect(process)


def test_kafka_connects_own_client_makes_changes_and_edits_a_connector(
    kafka: KafkaConnect, database: str, tmp_path: Path
) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    with serving(tmp_path / "home") as server:
        kafka.address = server.address
        made = {"name": "shop", "config": config_for(database), "initial_state": "RUNNING"}
        assert kafka.ask("POST", "/connectors", made, f"{ENTITIES}.CreateConnectorRequest")[0] == 201
        status, body = kafka.ask("POST", "/connectors", made, f"{ENTITIES}.CreateConnectorRequest")
        assert (status, body["error_code"]) == (409, 409)
        assert body["message"].endswith("Connector shop already exists")
        lake = server.supervisor.lake_home("shop").lake
        wait_until(lambda: LakeHome(lake).cuts.newest() is not None, 60)
        assert kafka.get("/", "ServerInfo")["version"]
        for path, entity in (
            ("/connectors/shop", "ConnectorInfo"),
            ("/connectors/shop/status", "ConnectorStateInfo"),
            ("/connectors/shop/tasks/0/status", "ConnectorStateInfo$TaskState"),
            ("/connectors/shop/offsets", "ConnectorOffsets"),
        ):
            # What moves all the time may move between two questions.
            wait_until(lambda p=path, e=entity: _without_nulls(kafka.get(p, e)) == server.ask("GET", p), 10)
        assert kafka.ask("PATCH", "/connectors/shop/config", {"readers.max": "4"}, MAP)[0] == 200
        assert kafka.get("/connectors/shop/config", MAP)["readers.max"] == "4"
        assert kafka.ask("PATCH", "/connectors/shop/config", {"readers.max": None}, MAP)[0] == 200
        assert "readers.max" not in kafka.get("/connectors/shop/config", MAP)

        offsets = kafka.get("/connectors/shop/offsets", "ConnectorOffsets")
        status, body = kafka.ask("PATCH", "/connectors/shop/offsets", offsets, f"{ENTITIES}.ConnectorOffsets")
        assert (status, "STOPPED state" in body["message"]) == (400, True)
        assert kafka.ask("PUT", "/connectors/shop/stop")[0] == 204
        server.wait_for("shop", "STOPPED")
        offsets = kafka.get("/connectors/shop/offsets", "ConnectorOffsets")
        assert kafka.ask("PATCH", "/connectors/shop/offsets", offsets, f"{ENTITIES}.ConnectorOffsets")[0] == 200
        assert kafka.ask("DELETE", "/connectors/shop/offsets")[0] == 200
        assert kafka.get("/connectors/shop/offsets", "ConnectorOffsets") == {"offsets": []}
        assert [each["kind"] for each in server.ask("GET", "/connectors/shop/offsets/history")] == ["set", "reset"]
        # Its workers do not forward this, and its client stumbles over an empty 202, its own server's too.
        server.ask("PUT", "/connectors/shop/resume", status=202)
        wait_until(lambda: server.ask("GET", "/connectors/shop/tables/t")["copies"] == 2, 60)
        assert kafka.ask("PUT", f"/connector-plugins/{CLASS}/config/validate", config_for(database), MAP)[0] == 200
        assert kafka.ask("DELETE", "/connectors/shop?drop_source=true")[0] == 204


def _without_nulls(value: Any) -> Any:
    """Kafka Connect's classes write fields of newer versions as null where they were left out."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
