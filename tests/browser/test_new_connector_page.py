"""From an address to a connector that runs, in the console."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tests.browsing import NARROW, Visit, assert_accessible, assert_fits, visiting
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import serving
from tests.small_shop import SmallShop

ROLE = """
drop role if exists carla;
drop role if exists with_password;
create role with_password nologin;
create role carla login superuser password 'right-password' in role with_password;
create table if not exists "no key" (note text);
"""


def opened(page: Page, shop: SmallShop) -> Page:
    page.get_by_role("link", name="New connector").click()
    page.get_by_label("Host, or a whole address").fill(shop.dsn.replace("postgres@", "carla:wrong-password@"))
    expect(page.get_by_label("User")).to_have_value("carla")
    return page


def _assert_statement(page: Page) -> None:
    """The statement is of what was examined, and says so."""
    page.get_by_role("button", name="As SQL or curl …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="SQL").click()
    expect(dialog).to_contain_text("examine again for the statement")
    dialog.get_by_role("button", name="Close").last.click()
    page.get_by_role("button", name="Examine again").click()
    expect(page.get_by_role("status").filter(has_text="ready")).to_be_visible()
    page.get_by_role("button", name="As SQL or curl …").click()
    dialog.get_by_role("button", name="SQL").click()
    expect(dialog).to_contain_text('CREATE SOURCES "orders only" FROM POSTGRES')
    expect(dialog).to_contain_text("TABLES (public.orders)")
    assert "right-password" not in dialog.inner_text()
    dialog.get_by_role("button", name="Close").last.click()


def test_a_wrong_password_is_told_in_place_and_an_address_becomes_a_connector(
    shop: SmallShop, visit: Visit, page: Page
) -> None:
    shop.run()
    execute(shop.dsn, ROLE)
    opened(page, shop)
    examine = page.get_by_role("button", name="Examine", exact=True)
    examine.click()
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("password")
    expect(notice.locator(".hint")).to_be_visible()
    assert "wrong-password" not in page.url + notice.inner_text()
    page.get_by_label("Password").fill("right-password")
    examine.click()
    expect(page.get_by_text("✓ reached")).to_be_visible()
    checks = page.locator(".checks li")
    expect(checks.filter(has_text="wal_level")).to_contain_text("logical")
    expect(checks.filter(has_text="max_slot_wal_keep_size").locator(".hint")).to_contain_text("alter system set")
    row = page.get_by_role("row").filter(has_text="public.orders")
    expect(row).to_contain_text("20")
    expect(page.get_by_role("row").filter(has_text="public.no key")).to_contain_text("has no primary key")
    page.get_by_label("public.no key").uncheck()
    expect(page.get_by_text("all but 1, and those that are made later")).to_be_visible()
    expect(page.locator("pre.paste")).to_contain_text("table.exclude.list")
    page.get_by_label("Find a table").fill("ers")
    page.get_by_role("button", name="Only what is found").click()
    expect(page.get_by_text("2 of 4")).to_be_visible()
    page.get_by_label("Find a table").fill("")
    page.get_by_label("public.customers").uncheck()
    page.get_by_label("Name of the connector").fill("shop")
    begin = page.get_by_role("button", name="Begin")
    expect(begin).to_be_disabled()
    page.get_by_label("Name of the connector").fill("orders only")
    expect(page.locator("pre.paste")).to_contain_text('database.password: "********"')
    assert_accessible(page)
    assert_fits(page)
    _assert_statement(page)
    begin.click()
    expect(page.get_by_role("heading", name="orders only")).to_be_visible()
    assert page.url.endswith("/ui/c/orders%20only")
    expect(page.locator(".head .state")).to_have_text("running")
    path = "/connectors/orders%20only"
    wait_until(lambda: [t["table"] for t in shop.server.ask("GET", f"{path}/tables")] == ["public.orders"], 60)
    assert shop.server.ask("GET", f"{path}/config/history")[0]["changes"][0]["field"] == "database.dbname"
    shop.server.ask("DELETE", f"{path}?drop_source=true", status=204)
    execute(shop.dsn, 'drop table "no key"; drop owned by carla; drop role carla; drop role with_password')


def test_a_server_without_connectors_leads_to_the_first_one(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server, visiting(browser, server.address, NARROW, "dark") as visit:
        page = visit.open("/ui/")
        expect(page.get_by_text("No connector yet")).to_be_visible()
        page.get_by_role("link", name="Make the first one").click()
        expect(page.get_by_role("heading", name="New connector")).to_be_visible()
        assert_accessible(page)
        assert_fits(page)


def test_what_an_address_lacks_is_said_in_place(visit: Visit) -> None:
    visit.is_lenient = True
    page = visit.open("/ui/new")
    page.get_by_label("Host, or a whole address").fill("127.0.0.1")
    page.get_by_role("button", name="Examine", exact=True).click()
    expect(page.locator(".outcome.failed")).to_contain_text("database.user: required")
