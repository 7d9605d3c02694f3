"""docs/server.md has every route and every metric, and none that is not there."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi.routing import APIRoute

from tailrace.server.api import connectors, events, health, lake, plugins, root, signals, sql
from tailrace.server.api.offsets import layouts
from tailrace.server.api.offsets import routes as offsets
from tailrace.server.api.progress import routes as progress
from tailrace.server.metrics import COUNTERS, GAUGES

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "server.md").read_text(encoding="utf-8")
ROUTERS = (connectors, events, health, lake, layouts, offsets, plugins, progress, root, signals, sql)


def test_every_route_is_documented_and_no_other() -> None:
    there = {
        f"{method} {route.path_format}"
        for module in ROUTERS
        for route in module.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }
    documented = set(re.findall(r"^\| `((?:GET|POST|PUT|PATCH|DELETE) /\S*)`", DOCUMENT, re.MULTILINE))
    assert documented == there


def test_every_metric_is_documented_and_no_other() -> None:
    there = {f"tailrace_{name}" for name in GAUGES} | {f"tailrace_{name}_total" for name in COUNTERS}
    documented = set(re.findall(r"^\| `(tailrace_\w+)`", DOCUMENT, re.MULTILINE))
    assert documented == there | {"tailrace_publish_seconds"}
