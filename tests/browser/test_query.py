"""The page Query: of the newest commit, of an older cut, following, stopping; and pinned queries."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
from playwright.sync_api import Page, expect
from tests.browsing import Visit, assert_accessible, assert_fits
from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.small_shop import SmallShop

SLOW = "select list_reduce(range(50000), lambda x, y: x + list_reduce(range(50000), lambda a, b: a + b + y))"
"""One call on a constant, which DuckDB does not interrupt, and which takes minutes."""
TOTAL = "select (select sum(total) from orders) + (select sum(amount) from ledger) - 1000000 as missing"
HOSTILE = "<img src=x onerror=alert(1)>"


def ask(page: Page, sql: str) -> None:
    page.get_by_label("SQL of DuckDB").fill(sql)
    page.keyboard.press("Control+Enter")


def have_table(shop: SmallShop, script: str) -> None:
    """Another table that the lake shows."""
    count = len(shop.ask("GET", "/tables"))
    execute(shop.dsn, script)
    wait_until(lambda: len(shop.ask("GET", "/tables")) > count, 60)
    shop.wait_until_live()


def test_a_query_answers_the_newest_commit_and_any_older_cut(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    older = shop.ask("GET", "/cuts/newest")
    shop.commit("insert into orders values (100, 1, 9.5, 'new')")
    page = visit.open("/ui/c/shop/query")
    ask(page, "select count(*) as n from orders")
    row = page.locator(".grid-row").first
    expect(row).to_have_text("21")
    expect(page.locator(".grid-head")).to_contain_text("n bigint")
    result = page.get_by_role("region", name="Result")
    expect(result).to_contain_text(re.compile(r"1 row as of .*, committed .* UTC, in "))
    assert_accessible(page)
    assert_fits(page)
    page.get_by_role("button", name="Time or position").click()
    page.get_by_placeholder("or a position").fill(older["position"])
    page.get_by_role("button", name="Run").click()
    expect(row).to_have_text("20")
    expect(result).to_contain_text(older["position"])
    page.get_by_role("button", name="Slide back").click()
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("UTC"))
    slider.press("End")
    slider.press("ArrowLeft")
    slider.press("End")
    expect(row).to_have_text("21")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").click()
    assert saved.value.path().read_bytes() == b"n\r\n21"
    page.get_by_role("button", name="Copy as").click()
    page.get_by_role("button", name="Command line").click()
    expect(page.locator("pre.paste")).to_contain_text("tailrace query LAKE 'select count(*) as n from orders' --as-of")
    shop.commit("delete from orders where id = 100")


def test_an_error_is_shown_whole_and_what_was_there_stays(shop: SmallShop, visit: Visit) -> None:
    visit.is_lenient = True
    page = visit.open("/ui/c/shop/query")
    ask(page, "select 7 as seven")
    expect(page.locator(".grid-row").first).to_have_text("7")
    ask(page, "select *\nfrom orders\nwhere where")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text('syntax error at or near "where"')
    expect(alert).to_contain_text("LINE 3: where where")
    expect(page.locator(".grid-row").first).to_have_text("7")


def test_following_shows_each_new_commit(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = visit.open("/ui/c/shop/query")
    ask(page, "select count(*) as n from customers")
    row = page.locator(".grid-row").first
    expect(row).to_have_text("10")
    page.get_by_role("button", name="Follow").click()
    expect(page.get_by_role("button", name="Following each cut")).to_have_attribute("aria-pressed", "true")
    for n in (11, 12):
        shop.commit(f"insert into customers values ({n}, 'new')")
        expect(row).to_have_text(str(n))
    page.get_by_role("button", name="Following each cut").click()
    shop.commit("delete from customers where id > 10")


def test_stop_ends_a_slow_query_on_the_server(shop: SmallShop, visit: Visit) -> None:
    visit.is_lenient = True
    page = visit.open("/ui/c/shop/query")
    ask(page, SLOW)
    expect(page.get_by_text("running for")).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).last.click()
    expect(page.get_by_role("alert")).to_contain_text("the query was stopped")
    expect(page.get_by_text("running for")).to_have_count(0)
    ask(page, "select 1 as one")
    expect(page.locator(".grid-row").first).to_have_text("1")


def test_names_and_values_are_shown_as_text(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    have_table(shop, f'create table "{HOSTILE}" ("{HOSTILE}" text primary key)')
    shop.commit(f"""insert into "{HOSTILE}" values ('{HOSTILE}')""")
    sql = f'select *, 9007199254740993 as n from "{HOSTILE}"'
    page = visit.open(f"/ui/c/shop/query?sql={quote(sql)}")
    page.get_by_text(f"public.{HOSTILE}").click()
    expect(page.locator(".columns")).to_contain_text(f'"{HOSTILE}" string')
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".grid-head")).to_contain_text(HOSTILE)
    expect(page.locator(".grid-row").first).to_contain_text(HOSTILE)
    expect(page.locator(".grid-row").first).to_contain_text("9007199254740993")
    expect(page.locator("main img")).to_have_count(0)


@contextmanager
def moving_money(shop: SmallShop) -> Iterator[threading.Event]:
    """While inside, one transaction after another takes from orders what it adds to the ledger."""
    stop, moved = threading.Event(), threading.Event()

    def move() -> None:
        with psycopg.connect(shop.dsn) as connection:
            while not stop.is_set():
                connection.execute("update orders set total = total - 1 where id = 1")
                connection.execute("insert into ledger (amount) values (1)")
                connection.commit()
                moved.set()
                stop.wait(0.02)

    thread = threading.Thread(target=move)
    thread.start()
    try:
        assert moved.wait(30)
        yield moved
    finally:
        stop.set()
        thread.join()


def test_a_pinned_query_stays_at_zero_at_every_cut_while_money_moves_between_two_tables(
    shop: SmallShop, visit: Visit
) -> None:
    shop.run()
    have_table(shop, "create table ledger (id int generated always as identity primary key, amount numeric(12, 2))")
    shop.commit("insert into ledger (amount) select 1000000 - sum(total) from orders")
    suggested = f"/ui/c/shop?pin={quote(f'money that is missing={TOTAL}')}"
    page = visit.open(suggested)
    card = page.locator("article", has_text="money that is missing")
    with moving_money(shop):
        expect(card).to_contain_text(re.compile(r"always 0 at ([3-9]|\d\d) cuts"))
    expect(card.locator(".pinned-value")).to_have_text("0")
    expect(page).to_have_url(re.compile(r"/ui/c/shop$"))
    assert_accessible(page)
    assert_fits(page)
    # It is kept in the browser, and the address that suggested it does not bring it back.
    page = visit.open("/ui/c/shop")
    pinned = page.locator("article", has_text="money that is missing")
    expect(pinned.locator(".pinned-value")).to_have_text("0")
    pinned.get_by_role("button", name="Remove").click()
    expect(pinned).to_have_count(0)
    page = visit.open(suggested)
    expect(page).to_have_url(re.compile(r"/ui/c/shop$"))
    expect(page.locator("article")).to_have_count(0)


def test_a_query_of_many_rows_is_pinned_by_their_number(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = visit.open("/ui/c/shop/query")
    ask(page, "select * from payments;")
    expect(page.get_by_role("region", name="Result")).to_contain_text("15 rows")
    page.get_by_label("Pin as").fill("payments")
    page.get_by_role("button", name="Pin", exact=True).click()
    card = page.locator("article", has_text="payments")
    expect(card.locator(".pinned-value")).to_have_text("15")
    shop.commit("insert into payments values (16, 16)")
    expect(card.locator(".pinned-value")).to_have_text("16")
    expect(card).to_contain_text("15 to 16 at 2 cuts")
