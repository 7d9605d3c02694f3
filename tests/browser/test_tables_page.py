"""The page of tables: what a table is and was, leaving one out, and a thousand of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from demo.embedded import EmbeddedPostgres
from playwright.sync_api import Browser, Page, expect
from tests.browsing import Visit, assert_accessible, visiting
from tests.integration.lake.equality import execute
from tests.serving import config_for
from tests.small_shop import SmallShop, small_shop

from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

ODD = "<img src=x onerror=alert(1)>"
TABLES = 1000
LONG_TASK_SECONDS = 0.1


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallShop]:
    dsn = postgres.create_database("tables_page")
    execute(dsn, f'create table "{ODD}" (id int primary key, v text); insert into "{ODD}" values (1, \'<b>bold</b>\')')
    with small_shop(dsn, tmp_path_factory.mktemp("tables") / "home") as found:
        found.commit("insert into customers values (80, 'x')")
        found.commit("alter table customers add column more numeric(10, 2); insert into customers values (90, 'x')")
        yield found
    postgres.drop_database("tables_page")


def test_a_table_shows_what_it_is_and_was_and_its_rows_only_when_asked(visit: Visit, shop: SmallShop) -> None:
    page = visit.page()
    queries: list[str] = []
    page.on("request", lambda request: queries.append(request.url) if request.url.endswith("/query") else None)
    page.goto(shop.address + "/ui/c/shop/tables")
    row = page.get_by_role("row").filter(has_text="public.customers")
    expect(row).to_contain_text("live")
    expect(row).to_contain_text("12")
    expect(row).to_contain_text("caught up")
    row.get_by_role("button", name="public.customers").click()
    drawer = page.get_by_role("dialog")
    expect(drawer).to_contain_text("about 12")
    expect(drawer).to_contain_text("column more numeric(10,2)")
    commit = shop.ask("GET", "/tables/public.customers")["schemas"][-1]["commit"]
    expect(drawer).to_contain_text(f"from {commit} on")
    assert queries == []
    drawer.get_by_role("button", name="Show rows").click()
    expect(drawer.get_by_role("grid", name="Rows")).to_contain_text("customer3@example.com")
    assert len(queries) == 1
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)


def test_a_name_and_rows_that_look_like_markup_are_text_and_a_table_is_left_out_by_its_name(
    visit: Visit, shop: SmallShop
) -> None:
    page = visit.open("/ui/c/shop/tables")
    name = f"public.{ODD}"
    page.get_by_role("button", name=name).click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_role("heading", name=name)).to_be_visible()
    drawer.get_by_role("button", name="Show rows").click()
    expect(drawer.get_by_role("grid", name="Rows")).to_contain_text("<b>bold</b>")
    page.keyboard.press("Escape")

    page.get_by_role("checkbox", name=f"Choose {name}").check()
    page.get_by_role("button", name="Leave out").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 table will be left out by the running connector")
    leave = dialog.get_by_role("button", name="Leave out", exact=True)
    expect(leave).to_be_disabled()
    assert_accessible(page)
    dialog.get_by_role("textbox").fill(name)
    leave.click()
    expect(page.get_by_role("row").filter(has_text=ODD)).to_contain_text("left out")
    page.get_by_role("group", name="Show only").get_by_role("button", name="left out 1").click()
    expect(page.get_by_role("row").filter(has_text="public.")).to_have_count(1)
    assert page.locator("img[src=x]").count() == 0


def test_a_thousand_tables_scroll_without_a_long_task(browser: Browser, shop: SmallShop) -> None:
    many = _with_many_tables(shop)
    with visiting(browser, shop.address) as visit:
        page = visit.open(f"/ui/c/{many}/tables")
        grid = page.get_by_role("grid", name="Tables")
        expect(grid).to_have_attribute("aria-rowcount", str(TABLES + 1))
        expect(page.get_by_role("button", name=f"All {TABLES:,}", exact=True)).to_be_visible()
        assert page.get_by_role("row").count() < 60, "what cannot be seen is not drawn"
        assert max(_scrolled(page)) < LONG_TASK_SECONDS
        expect(page.get_by_role("row").filter(has_text="public.t0999")).to_be_visible()
        page.get_by_role("button", name="in error 1").click()
        broken = page.get_by_role("row").filter(has_text="public.t0500")
        expect(broken).to_contain_text("it broke · mend it")
        expect(page.get_by_role("row")).to_have_count(2)
        page.get_by_role("searchbox", name="Find a table").fill("nothing of this name")
        page.get_by_role("button", name="Show all").click()
        expect(grid).to_have_attribute("aria-rowcount", str(TABLES + 1))


def _scrolled(page: Page) -> list[float]:
    """How long the page kept a processor at each step while the whole list went past. Time of a processor, and not of a
    clock as a `PerformanceObserver` of long tasks has it: what else this machine does holds up no step."""
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        metrics = tools.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    found = []
    page.get_by_role("grid", name="Tables").hover()
    for _ in range(TABLES * 35 // 1000 + 1):
        before = busy()
        page.mouse.wheel(0, 1000)
        page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
        found.append(busy() - before)
    return found


def _with_many_tables(shop: SmallShop) -> str:
    """A stopped connector whose lake knows a thousand tables; the records are all that there is of them."""
    shop.server.create("many", config_for(shop.dsn), initial_state="STOPPED")
    source = shop.server.supervisor.lake("shop").source()
    assert source is not None
    home = LakeHome.create(shop.server.supervisor.lake_home("many").lake)
    home.store_source(SourceRecord(source.identity, {}, source.format))
    live = TableRecord(TableState.LIVE, copy=1)
    records = {TableId("public", f"t{number:04}"): live for number in range(TABLES)}
    broken = replace(live, state=TableState.ERRORED, reason="it broke", hint="mend it")
    home.tables.store(records | {TableId("public", "t0500"): broken})
    return "many"
