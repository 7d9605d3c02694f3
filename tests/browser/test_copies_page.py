"""The page of copies: each of start, pause, resume and stop, from the click to the signal's end and the lake's rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from demo.embedded import EmbeddedPostgres
from playwright.sync_api import Locator, Page, expect
from tests.browsing import assert_accessible
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.small_shop import SmallShop, small_shop

ROWS = 20_000
LARGE = "public.large(odd"


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallShop]:
    dsn = postgres.create_database("copies_page")
    execute(
        dsn, f'create table "large(odd" (id int primary key); insert into "large(odd" select generate_series(1, {ROWS})'
    )
    execute(dsn, "analyze")
    slow = {"incremental_snapshot_chunk_size": "10", "readers_max": "1"}
    with small_shop(dsn, tmp_path_factory.mktemp("copies") / "home", **slow) as found:
        yield found
    postgres.drop_database("copies_page")


def test_a_copy_is_started_paused_resumed_and_stopped_each_with_its_end_in_place(page: Page, shop: SmallShop) -> None:
    shop.run()
    page.goto(shop.address + "/ui/c/shop/copies")
    started = _start(page, "By a regular expression", "public\\.large.*")
    expect(started).to_contain_text("execute-snapshot")
    expect(started).to_contain_text("running")
    bar = page.get_by_role("progressbar", name=f"Copy of {LARGE}")
    assert_accessible(page)
    expect(bar).to_have_attribute("aria-valuetext", re.compile(f"of about {ROWS:,} rows"))

    page.get_by_role("button", name=f"Pause {LARGE}").click()
    _expect_end(page, "pause-snapshot", "done")
    expect(started).to_contain_text("paused")
    expect(page.get_by_text(f"paused: {LARGE}")).to_be_visible()
    paused = _rows(shop)

    page.get_by_role("button", name="Resume all copies").click()
    _expect_end(page, "resume-snapshot", "done")
    expect(started).to_contain_text("running")
    wait_until(lambda: _rows(shop) > paused, 60)

    page.get_by_role("checkbox", name=LARGE).check()
    page.get_by_role("button", name="Stop 1 chosen table").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{LARGE} keeps its last good version and is in error until it is copied again.")
    assert_accessible(page)
    dialog.get_by_role("button", name="Stop it").click()
    _expect_end(page, "stop-snapshot", "1 table stopped")
    expect(started).to_contain_text("stopped")
    expect(page.get_by_text("No table is being copied")).to_be_visible()
    assert shop.ask("GET", f"/tables/{LARGE}")["state"] == "errored"
    run = page.get_by_role("listitem").filter(has_text="incremental").first
    expect(run).to_contain_text("stopped")
    run.locator("summary").click()
    expect(run.get_by_role("row").filter(has_text=LARGE)).to_contain_text("ended early")


def test_a_table_in_error_is_whole_again_after_the_copy_that_its_page_starts(page: Page, shop: SmallShop) -> None:
    shop.wait_for("RUNNING")
    page.goto(shop.address + "/ui/c/shop/tables")
    page.get_by_role("checkbox", name=f"Choose {LARGE}").check()
    page.get_by_role("button", name="Copy again").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("radio", name="Blocking").check()
    expect(dialog).to_contain_text('select * from public."large(odd"')
    dialog.get_by_role("button", name="Start the copy").click()
    signal = page.get_by_role("status").filter(has_text="execute-snapshot")
    expect(signal).to_contain_text("1 of 1 tables copied")
    expect(page.get_by_role("row").filter(has_text=LARGE)).to_contain_text("live")
    sql = 'select count(*), sum(id) from public."large(odd"'
    found = shop.server.ask("POST", "/query", {"connector": "shop", "sql": sql, "published": True})
    assert [int(each) for each in found["rows"][0]] == [ROWS, ROWS * (ROWS + 1) // 2]


def test_what_would_be_rejected_is_said_before_it_can_be_sent(page: Page, shop: SmallShop) -> None:
    page.goto(shop.address + "/ui/c/shop/copies")
    page.get_by_role("button", name="Start a copy").click()
    dialog = page.get_by_role("dialog")
    start = dialog.get_by_role("button", name="Start the copy")
    expect(start).to_be_disabled()
    dialog.get_by_role("checkbox", name="public.orders").check()
    expect(dialog).to_contain_text("1 table, about 20 rows.")
    dialog.get_by_label("Only rows for which this SQL is true").fill("totally > 1")
    expect(dialog).to_contain_text("It would be rejected: public.orders: the condition for table")
    expect(dialog).to_contain_text("select * from public.orders where (totally > 1)")
    assert_accessible(page)
    expect(start).to_be_disabled()
    dialog.get_by_label("Only rows for which this SQL is true").fill("total > 1")
    expect(start).to_be_enabled()
    before = shop.ask("GET", "/signals")
    dialog.get_by_role("button", name="Cancel").click()
    assert shop.ask("GET", "/signals") == before


def _start(page: Page, way: str, pattern: str) -> Locator:
    """The signal, where it is followed."""
    page.get_by_role("button", name="Start a copy").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=way).click()
    dialog.get_by_label("Regular expression for whole names").fill(pattern)
    expect(dialog.get_by_role("row").filter(has_text=LARGE)).to_contain_text(f"{ROWS:,}")
    dialog.get_by_role("button", name="Start the copy").click()
    return page.get_by_role("status").filter(has_text="execute-snapshot")


def _expect_end(page: Page, kind: str, text: str) -> None:
    signal = page.get_by_role("status").filter(has_text=kind).first
    expect(signal).to_contain_text(text)


def _rows(shop: SmallShop) -> int:
    found = shop.ask("GET", "/snapshots")["progress"]
    return max((each["rows"] for each in found if each["table"] == LARGE), default=0)
