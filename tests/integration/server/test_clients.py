"""Clients of Kafka Connect that others wrote work with our server: made, changed, paused, restarted, removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from kafka_connect import KafkaConnect
from kafka_connect_api import kafka_connect_api as api
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import CLASS, Served, config_for, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as served:
        yield served


def test_kafka_connect_py_drives_a_connector_through_its_life(server: Served, database: str) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    connect = KafkaConnect(server.address)
    assert connect.get_cluster_info()["kafka_cluster_id"] == "tailrace"
    assert CLASS in [each["class"] for each in connect.list_connector_plugins()]
    assert connect.validate_connector_config(CLASS, config_for(database) | {"name": "shop"})["error_count"] == 0
    made = connect.create_connector({"name": "shop", "config": config_for(database)})
    assert made["type"] == "source"
    with pytest.raises(requests.HTTPError, match="409"):
        connect.create_connector({"name": "shop", "config": config_for(database)})
    wait_until(lambda: connect.get_connector_status("shop")["connector"]["state"] == "RUNNING", 60)
    assert list(connect.list_connectors(expand="status", state="RUNNING")) == ["shop"]
    assert list(connect.list_connectors(state="FAILED")) == []
    assert connect.list_connector_tasks("shop")[0]["id"]["task"] == 0
    assert connect.get_connector_task_status("shop", 0)["state"] == "RUNNING"
    wait_until(lambda: connect.list_connector_topics("shop") == {"shop": {"topics": ["public.t"]}}, 60)
    with pytest.raises(requests.HTTPError, match="403"):
        connect.reset_connector_topics("shop")
    connect.pause_connector("shop")
    wait_until(lambda: connect.get_connector_status("shop")["connector"]["state"] == "PAUSED", 60)
    connect.resume_connector("shop")
    changed = connect.update_connector("shop", connect.get_connector_config("shop") | {"readers.max": "4"})
    assert changed["config"]["readers.max"] == "4"
    wait_until(lambda: connect.get_connector_status("shop")["connector"]["state"] == "RUNNING", 60)
    connect.restart_connector("shop", include_tasks=True, only_failed=True)
    connect.restart_connector_task("shop", 0)
    connect.stop_connector("shop")
    wait_until(lambda: connect.get_connector_status("shop")["tasks"] == [], 60)
    connect.delete_connector("shop")
    assert connect.list_connectors() == []


def test_kafka_connect_api_drives_a_connector_through_its_life(server: Served, database: str) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    port = int(server.address.rpartition(":")[2])
    cluster = api.Cluster(api.Api("127.0.0.1", port=port, protocol="http"))
    assert cluster.version
    connector = api.Connector(cluster, "shop")
    with pytest.raises(Exception, match="not found"):
        connector.exists()
    connector.config = config_for(database)
    assert connector.exists()
    assert set(cluster.connectors) == {"shop"}
    wait_until(lambda: connector.state == "RUNNING", 60)
    # As in Connect, the task may come a moment after its connector.
    wait_until(lambda: all(task.is_running() for task in connector.tasks), 60)
    assert connector.config["connector.class"] == CLASS
    connector.pause()
    wait_until(lambda: connector.state == "PAUSED", 60)
    connector.resume()
    connector.restart()
    connector.restart_all_tasks()
    wait_until(lambda: connector.state == "RUNNING", 60)
    level = cluster.root_logger["level"]
    cluster.root_logger = "WARN"
    assert cluster.loggers["root"]["level"] == "WARN"
    cluster.root_logger = level
    connector.delete()
    assert cluster.connectors == {}
