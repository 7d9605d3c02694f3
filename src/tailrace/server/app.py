"""The server's application: every route, put together. No state of its own."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from tailrace.server.api import connectors, events, health, plugins, root, session, signals, source, sql, work
from tailrace.server.api.config import routes as config
from tailrace.server.api.copies import routes as copies
from tailrace.server.api.cuts import routes as cuts
from tailrace.server.api.errors import RESPONSES, explain_errors
from tailrace.server.api.examination import routes as examination
from tailrace.server.api.feed import routes as feed
from tailrace.server.api.log import routes as log
from tailrace.server.api.messages import routes as messages
from tailrace.server.api.offsets import layouts
from tailrace.server.api.offsets import routes as offsets
from tailrace.server.api.parts import ServerParts
from tailrace.server.api.progress import routes as progress
from tailrace.server.api.query import routes as query
from tailrace.server.api.tables import routes as tables
from tailrace.server.api.verifications import routes as verifications
from tailrace.server.sessions import COOKIE
from tailrace.server.ui import pages

DESCRIPTION = """\
Copies live databases into data lakes and keeps the copies exact. What Kafka Connect's REST API covers is in its shape:
the same paths, status codes and bodies. The rest is ours.
"""
AREAS = (
    root,
    health,
    session,
    connectors,
    config,
    examination,
    progress,
    plugins,
    offsets,
    layouts,
    tables,
    cuts,
    log,
    query,
    signals,
    copies,
    events,
    messages,
    feed,
    source,
    work,
    sql,
    verifications,
)
"""Every module with routes. Those that are first are asked first."""


def create_app(parts: ServerParts) -> FastAPI:
    """The application of a server whose supervisor has begun."""
    app = _application()
    app.state.parts = parts
    return app


def openapi_document() -> dict[str, Any]:
    """What every server answers at `/openapi.json`."""
    return _application().openapi()


def _application() -> FastAPI:
    app = FastAPI(
        title="Tailrace",
        version=version("tailrace"),
        description=DESCRIPTION,
        responses=RESPONSES,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        # The gate takes a slash at the end away: clients of Kafka Connect send one, and not all follow a redirect.
        redirect_slashes=False,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
    )
    explain_errors(app)
    for each in AREAS:
        app.include_router(each.router)
    app.include_router(pages.router)
    described = app.openapi
    app.openapi = cache(lambda: _true(described()))  # type: ignore[method-assign]
    return app


def _operation_id(route: APIRoute) -> str:
    """What a generated client calls it: `pauseConnector`, as the function is called here."""
    first, *others = route.name.split("_")
    return first + "".join(map(str.capitalize, others))


def _true(document: dict[str, Any]) -> dict[str, Any]:
    """What FastAPI does not know: what is not valid is answered 400, never 422; and a server may want a token."""
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "The token of `--token-file`."},
        "basic": {"type": "http", "scheme": "basic", "description": "The same token, as the password of any user."},
    }
    schemes = document["components"]["securitySchemes"]
    schemes["session"] = {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "From `POST /session`."}
    document["security"] = [*({name: []} for name in schemes), {}]
    return document
