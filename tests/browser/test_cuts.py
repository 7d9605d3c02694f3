"""The page Cuts: the time axis, one cut, two compared, and the way to a query of one."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.browsing import Visit, assert_accessible, assert_fits
from tests.small_shop import SmallShop


def test_two_cuts_are_chosen_by_keyboard_and_compared(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    older = shop.commit("insert into customers values (200, 'a')")
    shop.commit("insert into orders values (200, 1, 5, '<b>x')")
    newer = shop.commit("insert into payments values (200, 200); update orders set total = 6 where id = 200")
    page = visit.open("/ui/c/shop/cuts")
    expect(page.get_by_role("heading", name=re.compile(r"\d+ kept cuts"))).to_be_visible()
    expect(page.locator(".bar-of").first).to_be_attached()
    axis = page.get_by_role("application")
    axis.press("ArrowLeft")
    axis.press("Enter")
    expect(page.get_by_role("heading", name=f"Cut of transaction {newer}")).to_be_visible()
    axis.press("ArrowLeft")
    axis.press("ArrowLeft")
    axis.press(" ")
    comparison = page.locator("section.card", has_text="From transaction")
    expect(comparison).to_contain_text(f"From transaction {older} to {newer}")
    expect(comparison).to_contain_text("2 tables differ, 1 stayed the same.")
    row = comparison.get_by_role("row", name=re.compile("public.orders"))
    expect(row.get_by_role("cell")).to_have_text(["public.orders", "2", "2", "1", "1", "–"])
    expect(page).to_have_url(re.compile(rf"cuts={newer}%2C{older}$"))
    assert_accessible(page)
    assert_fits(page)


def test_a_cut_is_chosen_by_mouse_and_from_the_table_and_queried(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    seq = shop.commit("insert into customers values (300, 'b')")
    cut = shop.ask("GET", f"/cuts/{seq}")
    page = visit.open("/ui/c/shop/cuts")
    page.get_by_text("As a table").click()
    box = page.get_by_role("row").filter(has_text=cut["position"]).get_by_role("checkbox")
    box.check()
    detail = page.locator("section.card", has_text=f"Cut of transaction {seq}")
    expect(detail).to_contain_text(cut["position"])
    expect(detail.get_by_role("row", name=re.compile("public.customers"))).to_contain_text("1")
    page.locator("circle.chosen").click(force=True)
    expect(detail).to_have_count(0)
    box.check()
    detail.get_by_role("link", name="Query at this cut").click()
    expect(page.get_by_placeholder("or a position")).to_have_value(cut["position"])


def test_the_axis_is_zoomed_and_says_what_else_happened(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = visit.open("/ui/c/shop/cuts")
    page.get_by_text("As a table").click()
    expect(page.get_by_role("table", name="Cuts and events")).to_contain_text("state")
    in_view = page.get_by_text(re.compile(r"As a table: \d+ cuts? and"))
    expect(in_view).to_be_visible()
    page.get_by_role("button", name="Earlier").click()
    page.get_by_role("button", name="Earlier").click()
    page.get_by_role("button", name="Earlier").click()
    expect(page.get_by_text(re.compile("As a table: no cuts"))).to_be_visible()
    page.get_by_role("button", name="All", exact=True).click()
    expect(in_view).to_be_visible()
    page.get_by_role("button", name="Zoom in").click()
    assert_fits(page)
