"""The OpenAPI document is true, and whatever is sent within it or not, no answer is an error of the server's.

Everything goes through the gate that a server has, with its token.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
import schemathesis
from demo.embedded import EmbeddedPostgres
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import config_for

from tailrace.server.api.parts import ServerParts
from tailrace.server.app import create_app
from tailrace.server.security import Gate, Guard
from tailrace.server.sessions import Sessions
from tailrace.server.supervisor.home import ServerHome
from tailrace.server.supervisor.store import Store
from tailrace.server.supervisor.supervisor import Supervisor

EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "25"))
"""Of a proof."""
NAME = "shop"
TOKEN = "a-token-of-these-tests"
HEADERS = {"authorization": f"Bearer {TOKEN}"}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@dataclass
class Shop:
    """A server with one connector that has a lake."""

    supervisor: Supervisor
    config: dict[str, str]
    app: Any
    document: Any

    def have_connector(self) -> None:
        """Made again where a request has removed it, or has given it another configuration."""
        if NAME in self.supervisor.names():
            if self.supervisor.view(NAME).config == self.config | {"name": NAME}:
                return
            self.supervisor.delete(NAME)
        self.supervisor.create(NAME, self.config)

    def operations(self) -> Iterator[Any]:
        """All but answers that never end by themselves."""
        for each in self.document.get_all_operations():
            operation = each.ok()
            if not operation.path.endswith("/events"):
                yield operation


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres) -> Iterator[Shop]:
    dsn = postgres.create_database("openapi")
    execute(dsn, "create table t (id int primary key); insert into t values (1)")
    with TemporaryDirectory(prefix="tailrace-home-") as folder, ServerHome(Path(folder)).locked():
        home = ServerHome(Path(folder))
        supervisor = Supervisor(home, Store.in_folder(home.path))
        guard = Guard(TOKEN, "127.0.0.1", sessions=Sessions(TOKEN))
        app = Gate(create_app(ServerParts.of(supervisor, "127.0.0.1:8083", guard)), guard)
        document = schemathesis.openapi.from_asgi("/openapi.json", app, headers=HEADERS)
        shop = Shop(supervisor, config_for(dsn), app, document)
        shop.have_connector()
        wait_until(lambda: supervisor.lake_home(NAME).cuts.newest() is not None, 60)
        yield shop
        shop.have_connector()
        supervisor.delete(NAME, drop=True)
        supervisor.close()
    postgres.drop_database("openapi")


def test_nothing_but_a_sign_of_life_is_answered_without_the_token(shop: Shop) -> None:
    async def ask(headers: dict[str, str]) -> dict[str, int]:
        transport = httpx.ASGITransport(shop.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
            asked = [(each.method, each.path.replace("{name}", NAME)) for each in shop.operations()]
            # At once: those with a wrong token are answered ever later.
            answers = await asyncio.gather(*(client.request(method, path) for method, path in asked))
            return {f"{method} {path}": each.status_code for (method, path), each in zip(asked, answers, strict=True)}

    for headers in ({}, {"authorization": "Bearer another-token-altogether"}):
        statuses = asyncio.run(ask(headers))
        open_to_all = {"get /health", "get /health/live", "get /session", "post /session"}
        assert {path for path, status in statuses.items() if status != 401} == open_to_all, statuses


@pytest.mark.timeout(3000)
def test_whatever_is_sent_is_answered_as_the_document_says(shop: Shop) -> None:
    search(shop, 5)


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_whatever_is_sent_is_answered_as_the_document_says_searched_long(shop: Shop) -> None:
    search(shop, EXAMPLES)


def search(shop: Shop, examples: int) -> None:
    found = list(shop.operations())
    assert len(found) > 50
    for operation in found:

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=st.one_of(_cases(operation)))
        def send(case: Any) -> None:
            _send(shop, case)

        send()


def _cases(operation: Any) -> list[Any]:
    """What the document allows, and what it does not."""
    modes = [GenerationMode.POSITIVE]
    if operation.body or operation.query or operation.path_parameters:
        modes.append(GenerationMode.NEGATIVE)
    return [operation.as_strategy(generation_mode=mode) for mode in modes]


def _send(shop: Shop, case: Any) -> None:
    # What it says when a connector does not progress is an answer.
    checks = [each for each in CHECKS if case.path != "/health/ready" or each is not not_a_server_error]
    case.call_and_validate(checks=checks, headers=HEADERS)
    if "name" in (case.path_parameters or {}):
        shop.have_connector()
        case.path_parameters["name"] = NAME
        case.call_and_validate(checks=checks, headers=HEADERS)
