"""What the server is and does: its pages, and how a browser shows all pages."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.browsing import Visit, assert_accessible, assert_fits, visiting
from tests.small_shop import SmallShop


def test_the_server_says_what_it_is_and_what_it_can_be_asked(shop: SmallShop, visit: Visit) -> None:
    page = visit.open("/ui/")
    page.get_by_role("link", name="Server").click()
    expect(page.get_by_role("heading", name="Server", level=1)).to_be_visible()
    expect(page.get_by_text(str(shop.server.supervisor.home.path), exact=True)).to_be_visible()
    page.get_by_text(re.compile(r"^log, \d+$")).click()
    expect(page.get_by_text("GET /connectors/{name}/log/transactions/{seq}")).to_be_visible()
    assert_accessible(page)
    assert_fits(page)


def test_a_browser_keeps_its_theme_and_its_zone(shop: SmallShop, visit: Visit) -> None:
    page = visit.open("/ui/server")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate(ground) != light
    page.get_by_role("button", name="local time").click()
    expect(page.get_by_text(re.compile(r"UTC\+\d\d:\d\d")).first).to_be_visible()
    again = visit.open("/ui/c/shop/log")
    expect(again.locator("html")).to_have_attribute("data-theme", "dark")
    again.goto(f"{shop.address}/ui/server")
    again.get_by_role("button", name="as the system").click()
    expect(again.locator("html")).not_to_have_attribute("data-theme", "dark")


def test_work_says_that_no_spark_was_started(shop: SmallShop, visit: Visit) -> None:
    """The server of these tests moves rows without one; looking starts none."""
    with visiting(visit.context.browser, shop.address, 390, "dark") as narrow:  # type: ignore[arg-type]
        page = narrow.open("/ui/work")
        expect(page.get_by_text("not started")).to_be_visible()
        expect(page.get_by_text("No job yet")).to_be_visible()
        assert_accessible(page)
        assert_fits(page)
        page.goto(f"{shop.address}/ui/server")
        expect(page.locator(".messages, .empty").first).to_be_visible()
        assert_fits(page)
        assert_accessible(page)
