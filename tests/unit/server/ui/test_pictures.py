"""Every page that the console's navigation leads to has its row and its pictures in docs/console.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
STATIC = ROOT / "src" / "tailrace" / "server" / "ui" / "static"
IMAGES = ROOT / "docs" / "images"
DOCUMENT = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
THEMES = ("light", "dark")
BYTES_MAX = 1_500_000


def _pages() -> dict[str, str]:
    """Each page's name in file names, and its path."""
    tabs = re.search(r"const TABS = \[(.*?)\];", (STATIC / "pages" / "connector.js").read_text(), re.DOTALL)
    places = re.search(r"const PLACES = \[(.*)\];", (STATIC / "frame.js").read_text())
    assert tabs
    assert places
    below = {path: f"/ui/c/NAME/{path}" for path in re.findall(r'\["(\w+)", "', tabs[1])}
    beside = {path: f"/ui/{path}" for path in re.findall(r'\["/ui/(\w+)", "', places[1])}
    return {"overview": "/ui/", "now": "/ui/c/NAME", "new": "/ui/new"} | below | beside


PAGES = _pages()


def test_the_navigation_is_read() -> None:
    assert {"offsets", "log", "messages"} < PAGES.keys()


@pytest.mark.parametrize("slug", PAGES)
def test_a_page_has_its_row_and_its_pictures(slug: str) -> None:
    assert re.search(rf"^\| .*`{re.escape(PAGES[slug])}` \| ", DOCUMENT, re.MULTILINE), f"a row with {PAGES[slug]}"
    for theme in THEMES:
        name = f"console-{slug}-{theme}.png"
        assert f"images/{name}" in DOCUMENT, name
        assert (IMAGES / name).exists(), f"python -m demo.pictures {slug}"


def test_there_are_no_pictures_of_pages_that_are_gone_and_all_of_them_are_small() -> None:
    found = sorted(IMAGES.glob("console-*.png"))
    assert [each.name for each in found] == sorted(f"console-{slug}-{theme}.png" for slug in PAGES for theme in THEMES)
    assert sum(each.stat().st_size for each in found) < BYTES_MAX
