"""docs/server.md has every route and every metric, and none that is not there."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi.routing import APIRoute

from tailrace.server.app import AREAS
from tailrace.server.metrics import BUILD_INFO, COUNTERS, GAUGES

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "server.md").read_text(encoding="utf-8")


def test_every_route_is_documented_and_no_other() -> None:
    there = {
        f"{method} {route.path_format}"
        for module in AREAS
        for route in module.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }
    documented = set(re.findall(r"^\| `((?:GET|POST|PUT|PATCH|DELETE) /\S*)`", DOCUMENT, re.MULTILINE))
    assert documented == there


def test_every_metric_is_documented_and_no_other() -> None:
    there = {f"tailrace_{name}" for name in GAUGES} | {f"tailrace_{name}_total" for name in COUNTERS}
    documented = set(re.findall(r"^\| `(tailrace_\w+)`", DOCUMENT, re.MULTILINE))
    assert documented == there | {"tailrace_publish_seconds", BUILD_INFO}
