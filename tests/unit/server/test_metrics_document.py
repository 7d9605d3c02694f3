"""docs/metrics.md has every figure with its labels, and names none that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tailrace.server.metrics import COUNTERS, GAUGES, LABELS, STATES

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
PUBLISH = "tailrace_publish_seconds"
FIGURES = {
    **{f"tailrace_{name}": LABELS.get(name, ()) for name in GAUGES},
    **{f"tailrace_{name}_total": LABELS.get(name, ()) for name in COUNTERS},
    PUBLISH: ("le",),
}


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


def test_rules_and_scrapes_can_be_loaded() -> None:
    scrape, rules = _blocks()
    assert [each["job_name"] for each in scrape["scrape_configs"]] == ["tailrace"]
    (group,) = rules["groups"]
    assert all(rule["alert"] and re.search(r"\btailrace|\bup\b", rule["expr"]) for rule in group["rules"])
    assert len(group["rules"]) == 7
