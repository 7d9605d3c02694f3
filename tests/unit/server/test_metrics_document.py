"""docs/metrics.md has every figure with its labels, and names none that is not there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tailrace.server.metrics import BUILD_INFO, COUNTERS, GAUGES, LABELS, STATES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
PUBLISH = "tailrace_publish_seconds"
FIGURES = {
    **{f"tailrace_{name}": LABELS.get(name, ()) for name in GAUGES},
    **{f"tailrace_{name}_total": LABELS.get(name, ()) for name in COUNTERS},
    PUBLISH: ("le",),
    BUILD_INFO: ("version",),
}
EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
SERIES = re.compile(r"\btailrace_\w+")
OFFERED = {*FIGURES, f"{PUBLISH}_bucket"} - {PUBLISH}
"""What a query can name."""


def _blocks() -> list[Any]:
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]


def test_every_figure_is_documented_with_its_labels() -> None:
    rows = re.findall(r"^\| `(tailrace_\w+)` \|([^|]*)\|", PAGE, re.MULTILINE)
    documented = {name: tuple(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    assert documented == FIGURES


def test_no_figure_is_named_that_is_not_there() -> None:
    named = set(re.findall(r"tailrace_\w+", PAGE))
    assert named - set(FIGURES) == {f"{PUBLISH}_bucket"}
    for name, label in re.findall(r"(tailrace_\w+)\{(\w+)", PAGE):
        assert label in FIGURES[name]


def test_every_state_of_a_connector_is_documented() -> None:
    assert [state for state in STATES if f"`{state}`" not in PAGE] == []


def test_a_scrape_can_be_loaded() -> None:
    (scrape,) = _blocks()
    assert [each["job_name"] for each in scrape["scrape_configs"]] == ["tailrace"]


def test_every_alert_can_be_loaded_names_a_figure_that_is_there_and_is_documented() -> None:
    (group,) = yaml.safe_load((EXAMPLES / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    assert group["name"] == "tailrace"
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"Tailrace[A-Za-z]+", rule["alert"])
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}
        require_known(rule["expr"], or_else="up")
        # A template may name a label that its expression has, and no other.
        named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert named <= {"instance" if rule["expr"].startswith("up") else "connector"}
    alerts = [rule["alert"] for rule in group["rules"]]
    assert re.findall(r"^\| `(Tailrace\w+)` \|", PAGE, re.MULTILINE) == alerts


def test_every_panel_of_the_dashboard_asks_for_figures_that_are_there() -> None:
    dashboard = json.loads((EXAMPLES / "grafana.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    assert len({each["id"] for each in panels}) == len(panels) > 10
    for panel in panels:
        assert panel["title"]
        for target in panel["targets"]:
            require_known(target["expr"])
            assert target["datasource"]["uid"] == "${datasource}"
    asked = set(SERIES.findall(json.dumps(panels)))
    # What a person looks for first.
    assert {"tailrace_lag_seconds", "tailrace_source_retained_bytes", "tailrace_changes_total"} <= asked
    names = [each["name"] for each in dashboard["templating"]["list"]]
    assert names == ["datasource", "connector"]
    require_known(dashboard["templating"]["list"][1]["query"]["query"])


def test_no_panel_of_the_dashboard_lies_on_another() -> None:
    dashboard = json.loads((EXAMPLES / "grafana.json").read_text(encoding="utf-8"))
    places = [each["gridPos"] for each in dashboard["panels"]]
    taken = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


def require_known(expression: str, or_else: str = "tailrace_") -> None:
    """The figures that a query names are there, with the labels that it asks for. Brackets are closed."""
    named = SERIES.findall(expression)
    assert named or expression.startswith(or_else), expression
    assert set(named) <= OFFERED, expression
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing), expression
    for name, labels in re.findall(r"(tailrace_\w+)\{([^}]*)\}", expression):
        known = {"connector", *FIGURES[name.removesuffix("_bucket")]}
        assert set(re.findall(r"(\w+)(?:=~|!=|=)", labels)) <= known, expression
