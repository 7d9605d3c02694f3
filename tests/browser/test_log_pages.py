"""The log and the messages of a connector, as a person looks at them."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from playwright.sync_api import Page, expect
from tests.browsing import Visit, assert_accessible, assert_fits, visiting
from tests.small_shop import SmallShop

HOSTILE = "<img src=x onerror=alert(1)>"


def transactions(page: Page) -> Page:
    return page.get_by_role("table", name="Transactions, the newest first")  # type: ignore[return-value]


def test_transactions_are_shown_and_values_only_when_they_are_asked_for(shop: SmallShop, visit: Visit) -> None:
    seq = shop.commit(
        f"insert into orders values (500, 2, 12.30, '{HOSTILE}'); update orders set note = null where id = 500;"
        "delete from payments where id = 1"
    )
    page = visit.open("/ui/c/shop/log")
    row = transactions(page).get_by_role("row").filter(has=page.get_by_role("link", name=str(seq), exact=True))
    expect(row).to_contain_text("public.orders, public.payments")
    expect(row).to_contain_text("published")
    row.get_by_role("link").click()
    shown = page.get_by_role("region", name=f"Transaction {seq}")
    expect(shown.locator("li")).to_have_text([re.compile("insert"), re.compile("update"), re.compile("delete")])
    expect(shown).not_to_contain_text("12.30")
    with page.expect_request(re.compile(f"/log/transactions/{seq}.*values=true")):
        shown.get_by_role("button", name="Show values").click()
    expect(shown.locator("li").first).to_contain_text("12.30")
    # As text: an element would have asked for a picture, and the visit would fail.
    expect(shown.locator("li").first).to_contain_text(HOSTILE)
    expect(shown.locator("img")).to_have_count(0)
    expect(shown.locator("li").nth(1)).to_contain_text("note null")
    assert_accessible(page)
    assert_fits(page)


def test_transactions_are_chosen_by_table_and_new_ones_come_by_themselves(shop: SmallShop, visit: Visit) -> None:
    other = shop.commit("insert into orders values (600, 1, 1, 'x')")
    page = visit.open("/ui/c/shop/log")
    page.get_by_role("combobox", name="Only of this table").fill("public.customers")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"table=public\.customers"))
    expect(transactions(page).get_by_role("link", name=str(other), exact=True)).to_have_count(0)
    seq = shop.commit("insert into customers values (600, 'new')")
    expect(transactions(page).get_by_role("link", name=str(seq), exact=True)).to_be_visible()
    expect(transactions(page).get_by_role("link", name=str(other), exact=True)).to_have_count(0)


def test_messages_are_filtered_by_level_and_text_and_shown_as_text(shop: SmallShop, visit: Visit) -> None:
    shop.ask("POST", "/signals", {"id": "hostile", "type": "log", "data": {"message": HOSTILE}})
    shop.commit("insert into customers values (700, 'wakes it')")
    page = visit.open("/ui/c/shop/messages")
    messages = page.locator(".messages li")
    expect(messages.filter(has_text="StateChanged").first).to_be_visible()
    expect(messages.filter(has_text=HOSTILE)).to_have_count(1)
    expect(page.locator(".messages img")).to_have_count(0)
    assert_accessible(page)
    page.get_by_role("searchbox", name="Find text in messages").fill("TableChanged")
    expect(messages.filter(has_text="StateChanged")).to_have_count(0)
    expect(messages.first).to_contain_text("public.")
    page.get_by_role("searchbox", name="Find text in messages").fill("")
    page.get_by_role("button", name="errors").click()
    expect(page.get_by_text("No message fits")).to_be_visible()


def test_a_logger_is_told_to_say_more(shop: SmallShop, visit: Visit) -> None:
    page = visit.open("/ui/c/shop/messages")
    page.get_by_text("Levels of all loggers").click()
    page.get_by_label("Level of tailrace.connector", exact=True).select_option("DEBUG")
    expect(page.get_by_text("says DEBUG and worse").or_(page.get_by_text("say DEBUG and worse"))).to_be_visible()
    assert shop.server.ask("GET", "/admin/loggers/tailrace.connector")["level"] == "DEBUG"
    shop.server.ask("PUT", "/admin/loggers/tailrace.connector", {"level": "INFO"})


def test_what_happened_is_listed_and_a_slot_that_is_gone_is_a_notice(shop: SmallShop, visit: Visit) -> None:
    page = visit.open("/ui/c/shop")
    feed = page.get_by_role("region", name="What happened")
    expect(feed.get_by_role("listitem").filter(has_text="public.customers").first).to_be_visible()
    expect(page.get_by_text(re.compile("The slot keeps WAL from"))).to_be_visible()
    shop.stop()
    expect(feed.get_by_role("listitem").first).to_contain_text("stopped")
    assert_accessible(page)
    (slot,) = rows(shop, "select slot_name from pg_replication_slots where database = current_database()")[0]
    rows(shop, f"select pg_copy_logical_replication_slot('{slot}', 'spare'), pg_drop_replication_slot('{slot}')")
    page.reload()
    notice = page.get_by_role("alert").filter(has_text=f"there is no slot {slot}")
    expect(notice).to_be_visible()
    rows(shop, f"select pg_copy_logical_replication_slot('spare', '{slot}'), pg_drop_replication_slot('spare')")
    page.reload()
    expect(page.get_by_text(re.compile("The slot keeps WAL from"))).to_be_visible()
    expect(notice).to_have_count(0)
    shop.run()
    page.get_by_role("link", name="All of it").click()
    expect(page.get_by_text("Who pressed pause, resume or stop is not kept")).to_be_visible()
    expect(feed.get_by_role("listitem").filter(has_text="the connector was created")).to_be_visible()


def rows(shop: SmallShop, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(shop.dsn, autocommit=True) as conn:
        return conn.execute(query).fetchall()  # type: ignore[arg-type]


def test_the_pages_fit_a_narrow_window_in_the_dark(shop: SmallShop, visit: Visit) -> None:
    seq = shop.commit("insert into customers values (800, 'narrow')")
    with visiting(visit.context.browser, shop.address, 390, "dark") as narrow:  # type: ignore[arg-type]
        for path in ("", f"/log?seq={seq}", "/messages", "/feed"):
            page = narrow.open(f"/ui/c/shop{path}")
            expect(page.locator("section.card").first).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
            assert_fits(page)
            assert_accessible(page)
