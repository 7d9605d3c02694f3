"""The frame around every page: the keyboard, one stream for all tabs, errors in place, names that are code."""

from __future__ import annotations

from playwright.sync_api import Browser, Locator, Page, Route, expect
from tests.browsing import NARROW, WIDE, Visit, assert_accessible, assert_fits, visiting
from tests.postgres import wait_until
from tests.serving import config_for
from tests.small_shop import SmallShop

STEPS_MAX = 80
TABS = 9
NOWHERE = "postgresql://ann@127.0.0.1:1/shop"
ODD = ["<img src=x onerror=alert(1)>", "quo\"te's & amp;", "متجر الزهور", "商店 🛒", "long-" * 40]


def pages_of(page: Page, shop: SmallShop) -> list[str]:
    """Every page that the console links to."""
    page.goto(f"{shop.address}/ui/c/{shop.name}")
    expect(page.locator(".tabs a").first).to_be_visible()
    links = page.locator(".tabs a, .side nav > ul a").all()
    return sorted({str(each.get_attribute("href")) for each in links})


def settled(page: Page) -> None:
    """Until the page shows its answers."""
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .loading, main [aria-busy=true]")).to_have_count(0)


def test_every_page_is_accessible_and_fits_in_both_themes_and_at_both_widths(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = visit.page()
    paths = pages_of(page, shop)
    assert {"/ui/", "/ui/c/shop", "/ui/c/shop/offsets"} <= set(paths)
    for path in [*paths, "/ui/login", "/ui/c/nothing", "/ui/nothing"]:
        visit.is_lenient = "nothing" in path
        page.set_viewport_size({"width": WIDE, "height": 800})
        page.goto(shop.address + path)
        settled(page)
        for width in (WIDE, NARROW):
            page.set_viewport_size({"width": width, "height": 800})
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
                assert_accessible(page)
            assert_fits(page)


def test_all_tabs_of_a_browser_listen_to_one_stream(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    hub = shop.server.supervisor.hub
    before = hub.listeners
    tabs = [visit.open(f"/ui/{'c/shop' if number % 2 else ''}") for number in range(TABS)]
    for tab in tabs:
        settled(tab)
    wait_until(lambda: hub.listeners == before + 1)
    shop.pause()
    for tab in tabs:
        expect(tab.locator("main .state", has_text="paused").first).to_be_visible()
    for tab in tabs[1:]:
        tab.close()
    shop.run()
    expect(tabs[0].locator("main .state", has_text="running").first).to_be_visible()
    assert hub.listeners == before + 1


def test_a_whole_task_is_done_by_keyboard_alone(shop: SmallShop, page: Page) -> None:
    shop.run()
    shop.commit("insert into customers values (100, 'new')")
    settled(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the page")).to_be_focused()
    page.keyboard.press("Enter")
    press(page, page.get_by_role("link", name="shop", exact=True))
    expect(page.get_by_role("heading", name="shop", level=1)).to_be_focused()
    press(page, page.get_by_role("button", name="Pause", exact=True))
    expect(page.locator(".head .state")).to_contain_text("paused")
    press(page, page.get_by_role("button", name="Resume", exact=True))
    expect(page.locator(".head .state")).to_contain_text("running")
    press(page, page.get_by_role("link", name="Offsets", exact=True))
    field = page.get_by_label("ts_usec", exact=True)
    reach(page, field)
    page.keyboard.press("Control+A")
    page.keyboard.type("1795000000000000")
    expect(page.get_by_label("Before and after")).to_contain_text("1795000000000000")
    opener = page.get_by_role("button", name="Stop, then apply …")
    press(page, opener)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    for key in ["Tab"] * 12 + ["Shift+Tab"] * 12:
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()
    assert shop.ask("GET", "/offsets/history") == [], "Escape changes nothing"


def reach(page: Page, wanted: Locator) -> None:
    """With Tab, as someone without a mouse does."""
    expect(wanted).to_be_visible()
    for _ in range(STEPS_MAX):
        page.keyboard.press("Tab")
        if wanted.evaluate("(found) => found === document.activeElement"):
            ring = wanted.evaluate("(found) => getComputedStyle(found).outlineStyle")
            assert ring != "none", f"it is not seen that {wanted} has the focus"
            return
    raise AssertionError(f"{STEPS_MAX} steps do not lead to {wanted}")


def press(page: Page, wanted: Locator) -> None:
    expect(wanted).to_be_enabled()
    reach(page, wanted)
    page.keyboard.press("Enter")


def test_an_error_of_the_server_is_shown_in_place_and_never_as_an_empty_list(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = visit.page()
    paths = pages_of(page, shop)
    visit.is_lenient = True

    def broken(route: Route) -> None:
        is_api = "/ui" not in route.request.url and "/events" not in route.request.url
        if is_api:
            route.fulfill(status=500, json={"error_code": 500, "message": "it <b>broke</b>\nhint: look at server.log"})
        else:
            route.fallback()

    page.route("**/*", broken)
    for path in paths:
        page.goto(shop.address + path)
        errors = page.locator("main .notice.bad, main [role=alert]", has_text="it <b>broke</b>")
        error = errors.filter(visible=True).first
        expect(error).to_be_visible()
        expect(error).to_contain_text("look at server.log")
        expect(page.locator("main .empty")).to_have_count(0)
    page.goto(shop.address + "/ui/")
    expect(page.locator("main .notice.bad")).to_contain_text("it <b>broke</b>")
    page.unroute_all(behavior="wait")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("li.connector")).to_contain_text("running")


def test_names_are_text_whatever_they_hold(shop: SmallShop, browser: Browser) -> None:
    for name in ODD:
        config = config_for(NOWHERE, database_dbname="<b>db</b>&amp;")
        shop.server.create(name, config, initial_state="STOPPED")
    with visiting(browser, shop.address, NARROW) as visit:
        page = visit.page()
        page.on("dialog", lambda found: visit.faults.append(f"a name was run: {found.message}"))
        page.goto(shop.address + "/ui/")
        for name in ODD:
            expect(page.get_by_role("link", name=name, exact=True).last).to_be_attached()
        expect(page.locator("li.connector", has_text="<b>db</b>&amp;")).to_have_count(len(ODD))
        assert_fits(page)
        for name in ODD:
            page.goto(shop.address + "/ui/")
            page.locator("li.connector").get_by_role("link", name=name, exact=True).click()
            expect(page.get_by_role("heading", level=1)).to_have_text(name)
            expect(page).to_have_title(f"{name} · Tailrace")
            assert_fits(page)
            page.reload()
            expect(page.get_by_role("heading", level=1)).to_have_text(name)
    for name in ODD:
        SmallShop(shop.server, shop.dsn, name).ask("DELETE", "")
