"""A connector's configuration in the console: checked while one types, compared before it is stored, and taken back."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, Request, Route, expect
from tests.browsing import Visit, assert_accessible, assert_fits
from tests.small_shop import SmallShop

ANN, BOB = {"tailrace-user": "ann"}, {"tailrace-user": "bob"}
STRANGE = "<img src=x onerror=alert(1)>"


def opened(visit: Visit) -> Page:
    page = visit.open("/ui/c/shop/config")
    expect(page.get_by_label("database.hostname", exact=True)).to_have_value("127.0.0.1")
    return page


def version_of(page: Page) -> int:
    return int((page.locator("main section h2").first.text_content() or "").removeprefix("Version "))


def add(page: Page, name: str, value: str) -> None:
    page.get_by_label("Find or add a property").fill(name)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_label(name, exact=True).fill(value)


def _stale(route: Route, request: Request, known: dict[str, Any]) -> None:
    """What a GET answered before, as long as that is known."""
    if known and request.method == "GET":
        route.fulfill(**known)
    else:
        route.continue_()


def test_what_is_wrong_is_said_while_one_types(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = opened(visit)
    store = page.get_by_role("button", name="Store …")
    expect(store).to_be_disabled()
    add(page, "transforms", STRANGE)
    refused = page.locator(".property", has_text="transforms")
    expect(refused.locator(".state")).to_have_text("refused")
    expect(refused.locator(".fault")).to_contain_text("a query can do the rest")
    expect(store).to_be_disabled()
    refused.get_by_role("button", name="Remove transforms").click()
    add(page, "tabel.include.list", "a")
    expect(page.locator(".property", has_text="tabel.include.list")).to_contain_text("did you mean table.include.list?")
    assert_accessible(page)
    assert_fits(page)
    page.get_by_role("button", name="As JSON").click()
    page.get_by_label("As JSON; ********").fill('{"name": "shop", "readers.max": "none"')
    expect(page.get_by_text("This is not JSON")).to_be_visible()
    page.get_by_label("As JSON; ********").fill('{"name": "shop", "readers.max": "none"}')
    expect(page.get_by_text("'none' is not a whole number")).to_be_visible()
    expect(page.get_by_text("required (or set database.dsn)").first).to_be_visible()
    page.get_by_role("button", name="Undo my changes").click()
    expect(store).to_be_disabled()
    assert shop.ask("GET", "/config").get("readers.max") is None


def test_a_change_is_compared_stored_and_taken_back(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = opened(visit)
    before = version_of(page)
    add(page, "readers.max", "3")
    add(page, "database.password", "canary-password")
    page.get_by_role("button", name="Store …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("readers.max")
    expect(dialog).to_contain_text("given again")
    assert "canary-password" not in dialog.inner_text()
    dialog.get_by_role("button", name="Store it").click()
    expect(page.get_by_role("heading", name=f"Version {before + 1}")).to_be_visible()
    # A secret is neither filled in nor anywhere else.
    expect(page.get_by_label("database.password", exact=True)).to_have_value("")
    assert "canary-password" not in page.content() + page.url
    assert shop.server.supervisor.view("shop").config["database.password"] == "canary-password"
    history = page.locator(".edits li")
    expect(history.first).to_contain_text("database.password, readers.max")
    history.nth(1).locator("summary").click()
    history.nth(1).get_by_role("button", name=f"Revert to version {before} …").click()
    expect(dialog).to_contain_text("readers.max goes")
    dialog.get_by_role("button", name="Revert").click()
    expect(page.get_by_role("heading", name=f"Version {before + 2}")).to_be_visible()
    assert "readers.max" not in shop.ask("GET", "/config")
    shop.run()


def test_a_revert_to_another_server_asks_for_the_password_again(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    was = shop.ask("GET", "/config")
    shop.ask("PATCH", "/config", {"database.password": "one"}, headers=ANN)
    first = int(shop.server.http.get("/connectors/shop/config").headers["etag"].strip('"'))
    shop.ask("PATCH", "/config", {"database.hostname": "localhost", "database.password": "two"}, headers=ANN)
    page = visit.open("/ui/c/shop/config")
    edit = page.locator(".edits li").nth(1)
    edit.locator("summary").click()
    edit.get_by_role("button", name=f"Revert to version {first} …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("the stored password is not used")
    expect(dialog.get_by_role("button", name="Revert")).to_be_disabled()
    dialog.get_by_label("database.password, given again").fill("one")
    dialog.get_by_role("button", name="Revert").click()
    expect(page.get_by_role("heading", name=f"Version {first + 2}")).to_be_visible()
    stored = shop.server.supervisor.view("shop").config
    assert (stored["database.hostname"], stored["database.password"]) == ("127.0.0.1", "one")
    shop.ask("PUT", "/config", was)
    shop.run()


def test_of_two_editors_the_second_sees_the_edit_of_the_first(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = opened(visit)
    before = version_of(page)
    add(page, "readers.max", "5")
    shop.ask("PATCH", "/config", {"lake.retain": "8d"}, headers=BOB)
    notice = page.locator(".notice", has_text="was changed meanwhile")
    expect(notice).to_contain_text("bob@127.0.0.1")
    expect(notice).to_contain_text("lake.retain")
    expect(page.get_by_role("button", name="Store …")).to_be_disabled()
    notice.get_by_role("button", name="Put my changes on top").click()
    expect(page.get_by_role("heading", name=f"Version {before + 1}")).to_be_visible()
    expect(page.get_by_label("readers.max", exact=True)).to_have_value("5")
    expect(page.get_by_label("lake.retain", exact=True)).to_have_value("8d")
    # Another one comes, and the page does not learn of it before the server refuses ours.
    visit.is_lenient = True
    answer = shop.server.http.get("/connectors/shop/config")
    known = {"body": answer.text, "headers": {"etag": answer.headers["etag"], "content-type": "application/json"}}
    stale = "**/connectors/shop/config"
    page.route(stale, lambda route, request: _stale(route, request, known))
    page.get_by_role("button", name="Store …").click()
    shop.ask("PATCH", "/config", {"lake.retain": None}, headers=BOB)
    dialog = page.get_by_role("dialog")
    with page.expect_response(lambda answer: answer.request.method == "PUT") as refused:
        dialog.get_by_role("button", name="Store it").click()
    assert refused.value.status == 409
    expect(dialog.get_by_role("alert")).to_contain_text("at version")
    # The route stays: to take it away while a request is under way has that handled twice.
    known.clear()
    shop.ask("POST", "/restart", status=204)
    expect(dialog).to_have_count(0)
    expect(notice).to_contain_text("lake.retain goes")
    notice.get_by_role("button", name="Start again from it").click()
    expect(notice).to_have_count(0)
    expect(page.get_by_label("readers.max", exact=True)).to_have_count(0)
    assert "readers.max" not in shop.ask("GET", "/config")
    shop.run()
