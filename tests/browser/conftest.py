"""What tests in a browser share: one Chromium, and one server with a connector that follows a small shop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from demo.embedded import EmbeddedPostgres
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright
from tests.browsing import CHROMIUM, WAIT_MS, Visit, chromium, chromium_path, visiting
from tests.small_shop import SmallShop, small_shop

_numbers = count(1)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    if chromium_path() is None:
        # Not skipped: a gate that leaves the console out is no gate.
        pytest.fail(f"no Chromium here: make setup installs it where it may; {CHROMIUM} names another", pytrace=False)
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    path = chromium_path()
    assert path is not None
    with chromium(playwright, path) as started:
        yield started


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallShop]:
    """A server for the tests of one file. What a test changes, the next one finds: begin with `shop.run()`."""
    name = f"small_shop_{next(_numbers)}"
    with small_shop(postgres.create_database(name), tmp_path_factory.mktemp("shop") / "home") as found:
        yield found
    postgres.drop_database(name)


@pytest.fixture
def visit(browser: Browser, shop: SmallShop) -> Iterator[Visit]:
    """`visit.open("/ui/c/shop")` is a tab, 1280 wide; `visiting(browser, shop.address, 390, "dark")` another visit."""
    with visiting(browser, shop.address) as found:
        yield found


@pytest.fixture
def page(visit: Visit) -> Page:
    """The overview."""
    return visit.open("/ui/")
