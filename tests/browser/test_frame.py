"""The frame around every page."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from tests.browsing import assert_accessible, assert_fits
from tests.small_shop import SmallShop


def test_the_overview_shows_a_connector_that_runs(shop: SmallShop, page: Page) -> None:
    row = page.locator("li.connector")
    expect(row).to_contain_text("running")
    expect(row).to_contain_text("3 live")
    shop.commit("insert into customers values (11, 'new')")
    expect(row).to_contain_text("caught up")
    assert_accessible(page)
    assert_fits(page)
