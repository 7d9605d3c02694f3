"""The server's application: every route, put together. No state of its own."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI

from tailrace.server.api import connectors, events, health, lake, layouts, offsets, plugins, root, signals, sql
from tailrace.server.api.errors import RESPONSES, explain_errors
from tailrace.server.api.parts import Parts

DESCRIPTION = """\
Copies live databases into data lakes and keeps the copies exact. What Kafka Connect's REST API covers is in its shape:
the same paths, status codes and bodies. The rest is ours.
"""


def create_app(parts: Parts) -> FastAPI:
    """The application of a server whose supervisor has begun."""
    app = FastAPI(
        title="Tailrace",
        version=version("tailrace"),
        description=DESCRIPTION,
        responses=RESPONSES,
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    app.state.parts = parts
    explain_errors(app)
    for each in (root, health, connectors, plugins, offsets, layouts, lake, signals, events, sql):
        app.include_router(each.router)
    return app
