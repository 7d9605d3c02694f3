"""What tests in a browser share: one Chromium, and one server with a connector that follows a shop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright
from tests.browsing import CHROMIUM, chromium, chromium_path


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    if chromium_path() is None:
        pytest.skip(f"no Chromium here: make setup installs it where it may; {CHROMIUM} names another")
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    path = chromium_path()
    assert path is not None
    with chromium(playwright, path) as started:
        yield started
