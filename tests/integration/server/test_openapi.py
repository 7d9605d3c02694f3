"""The OpenAPI document is true, and whatever is sent within it, no answer is an error of the server's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import schemathesis
from demo.embedded import EmbeddedPostgres
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import config_for

from tailrace.server.api.parts import Parts
from tailrace.server.app import create_app
from tailrace.server.home import ServerHome
from tailrace.server.store import Store
from tailrace.server.supervisor import Supervisor

EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "3"))
NAME = "shop"


@pytest.fixture(scope="module")
def document(postgres: EmbeddedPostgres) -> Iterator[Any]:
    """Of a server with one connector that has a lake."""
    dsn = postgres.create_database("openapi")
    execute(dsn, "create table t (id int primary key); insert into t values (1)")
    with TemporaryDirectory(prefix="tailrace-home-") as folder, ServerHome(Path(folder)).locked():
        home = ServerHome(Path(folder))
        supervisor = Supervisor(home, Store.in_folder(home.path))
        supervisor.create(NAME, config_for(dsn))
        wait_until(lambda: supervisor.lake_home(NAME).cuts.newest() is not None, 60)
        yield schemathesis.openapi.from_asgi("/openapi.json", create_app(Parts.of(supervisor, "127.0.0.1:8083")))
        supervisor.delete(NAME, drop=True)
        supervisor.close()
    postgres.drop_database("openapi")


def operations(document: Any) -> Iterator[Any]:
    """All but answers that never end by themselves, and the removal of the one connector."""
    for each in document.get_all_operations():
        operation = each.ok()
        if not operation.path.endswith("/events") and operation.label != "DELETE /connectors/{name}":
            yield operation


@pytest.mark.timeout(3000)
def test_whatever_is_sent_is_answered_without_an_error_of_ours(document: Any) -> None:
    found = list(operations(document))
    assert len(found) > 40
    for operation in found:

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=st.one_of(_cases(operation)))
        def send(case: Any) -> None:
            _send(case)

        send()


def _cases(operation: Any) -> list[Any]:
    """What the document allows, and what it does not."""
    modes = [GenerationMode.POSITIVE]
    if operation.body or operation.query or operation.path_parameters:
        modes.append(GenerationMode.NEGATIVE)
    return [operation.as_strategy(generation_mode=mode) for mode in modes]


def _send(case: Any) -> None:
    if case.path == "/health/ready":
        # What it says when a connector does not progress is an answer.
        assert case.call().status_code in (200, 503)
        return
    case.call_and_validate(checks=[not_a_server_error])
    if "name" in (case.path_parameters or {}):
        case.path_parameters["name"] = NAME
        case.call_and_validate(checks=[not_a_server_error])
