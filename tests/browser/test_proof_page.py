"""Prove it: the lake compared with its source in the console, and a row that differs."""

from __future__ import annotations

from playwright.sync_api import expect
from pyarrow import parquet
from tests.browsing import Visit, assert_accessible, assert_fits
from tests.small_shop import SmallShop


def test_a_lake_is_proven_equal_and_a_row_that_someone_took_away_is_named(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = visit.open("/ui/c/shop/proof")
    prove = page.get_by_role("button", name="Prove it")
    expect(page.get_by_text("It was never proven yet.")).to_be_visible()
    prove.click()
    result = page.get_by_role("region", name="Run 1")
    expect(result.locator("h2")).to_have_text("Run 1: equal")
    expect(result).to_contain_text("3 tables equal, compared at")
    expect(result.get_by_role("row")).to_have_count(4)
    # Behind our back: a file of the table is replaced by one that lacks its last row.
    (path,) = (shop.lake / "public" / "payments").glob("*.parquet")
    rows = parquet.read_table(path)
    lost = rows.column(0).to_pylist()[-1]
    parquet.write_table(rows.slice(0, rows.num_rows - 1), path)
    prove.click()
    result = page.get_by_role("region", name="Run 2")
    expect(result.locator("h2")).to_have_text("Run 2: not equal")
    row = result.get_by_role("row").nth(1)
    expect(row).to_contain_text("public.payments")
    expect(row).to_contain_text("different")
    expect(row).to_contain_text(f"id = {lost} missing")
    assert_accessible(page)
    assert_fits(page)
    page.get_by_role("button", name="Run 1").click()
    expect(page.get_by_role("region", name="Run 1")).to_contain_text("3 tables equal")
    parquet.write_table(rows, path)


def test_what_cannot_be_proven_now_says_why(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    shop.pause()
    page = visit.open("/ui/c/shop/proof")
    expect(page.get_by_role("button", name="Prove it")).to_be_disabled()
    expect(page.get_by_text("the connector has to run")).to_be_visible()
    shop.run()
    expect(page.get_by_role("button", name="Prove it")).to_be_enabled()
