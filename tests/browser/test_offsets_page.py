"""Offsets in the console: from a click to what became of it, as a person goes the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from playwright.sync_api import Locator, Page, expect
from tests.browsing import Visit
from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.serving import config_for
from tests.small_shop import TABLES, SmallShop

ROW = iter(range(1000, 2000))


def offsets_page(visit: Visit, name: str = "shop") -> Page:
    page = visit.open(f"/ui/c/{name}/offsets")
    expect(page.get_by_role("heading", name="Reset")).to_be_visible()
    return page


def insert(shop: SmallShop) -> None:
    """A transaction that the lake does not see while the connector is stopped."""
    execute(shop.dsn, f"insert into customers values ({next(ROW)}, 'new')")


def edits(shop: SmallShop) -> list[dict[str, Any]]:
    return list(shop.ask("GET", "/offsets/history"))


def assessment(page: Page) -> Locator:
    return page.locator("[aria-busy=false]").filter(has=page.get_by_role("heading", name="What would follow"))


def lsn_of(shop: SmallShop) -> int:
    return int(shop.ask("GET", "/offsets")["offsets"][0]["offset"]["lsn"])


def test_a_change_goes_by_dry_run_stop_and_apply_and_the_connector_starts_again(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    shop.commit(f"insert into customers values ({next(ROW)}, 'new')")
    page, count = offsets_page(visit), len(edits(shop))
    apply = page.get_by_role("button", name="Stop, then apply …")
    expect(apply).to_be_disabled()
    expect(page.get_by_text("nothing is changed yet", exact=True)).to_be_visible()
    page.get_by_label("ts_usec", exact=True).fill("1795000000000000")
    expect(assessment(page).get_by_label("Before and after")).to_contain_text("1795000000000000 (2026-11-18")
    assert len(edits(shop)) == count, "a dry run leaves no trace"
    assert shop.ask("GET", "/status")["connector"]["state"] == "RUNNING", "and stops nothing"
    apply.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Apply")).to_be_disabled()
    dialog.get_by_role("button", name="Stop shop").click()
    expect(dialog).to_contain_text("The connector is stopped.")
    expect(dialog).to_contain_text("nothing changes: this is where the lake is")
    dialog.get_by_role("button", name="Apply").click()
    expect(dialog).to_have_count(0)
    expect(page.locator(".after")).to_contain_text("altered")
    assert (len(edits(shop)), edits(shop)[-1]["kind"]) == (count + 1, "set")
    page.locator(".after").get_by_role("button", name="Start").click()
    shop.wait_until_live()
    expect(page.locator(".edits li", has_text=f"Edit {count + 1}")).to_contain_text("applied")
    assert_equal(shop.dsn, shop.lake, *TABLES)


def test_skipping_transactions_wants_the_name_waits_for_the_start_and_is_taken_with_copies(
    shop: SmallShop, visit: Visit
) -> None:
    shop.run()
    shop.stop()
    insert(shop)
    page = offsets_page(visit)
    page.get_by_role("button", name="The end of the source").click()
    found = assessment(page)
    expect(found).to_contain_text("Transactions skipped1 transaction")
    expect(found).to_contain_text("public.customers")
    page.get_by_role("button", name="Apply …").click()
    dialog = page.get_by_role("dialog")
    apply = dialog.get_by_role("button", name="Apply")
    expect(dialog).to_contain_text("The connector is stopped.")
    dialog.get_by_label("Type shop to go ahead").fill("shopp")
    expect(apply).to_be_disabled()
    dialog.get_by_label("Type shop to go ahead").fill("shop")
    apply.click()
    version = len(edits(shop)) + 1
    edit = page.locator(".edits li", has_text=f"Edit {version}")
    expect(edit).to_contain_text("waits for the next start")
    edit.locator("summary").click()
    expect(edit.get_by_label("Before and after")).to_contain_text("lsn")
    page.locator(".after").get_by_role("button", name="Start").click()
    expect(edit).to_contain_text("applied")
    shop.wait_until_live()
    assert_equal(shop.dsn, shop.lake, *TABLES)


def test_a_reset_wants_the_name_and_is_taken_back_with_undo(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    page = offsets_page(visit)
    page.get_by_role("button", name="Reset …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("public.orders")
    dialog.get_by_label("Type shop to go ahead").fill("shop")
    expect(dialog.get_by_role("button", name="Reset")).to_be_disabled()
    expect(dialog).to_contain_text("only while the connector is stopped")
    dialog.get_by_role("button", name="Cancel").click()
    shop.stop()
    expect(page.get_by_role("button", name="Apply …")).to_have_text("Apply …")
    before = shop.ask("GET", "/offsets")
    page.get_by_role("button", name="Reset …").click()
    dialog.get_by_label("Type shop to go ahead").fill("shop")
    dialog.get_by_role("button", name="Reset").click()
    expect(page.get_by_text("No offset yet")).to_be_visible()
    assert shop.ask("GET", "/offsets") == {"offsets": []}
    reset = edits(shop)[-1]["version"]
    page.get_by_role("button", name="Undo the last edit …").click()
    expect(dialog.get_by_label("Before and after")).to_contain_text("lsn")
    dialog.get_by_role("button", name="Undo it").click()
    expect(page.locator(".edits li").first).to_contain_text(f"undo of {reset}")
    expect(page.get_by_label("lsn", exact=True)).to_have_value(str(before["offsets"][0]["offset"]["lsn"]))
    assert shop.ask("GET", "/offsets") == before


def test_of_two_editors_the_second_sees_the_first_and_begins_again_from_it(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    shop.stop()
    insert(shop)
    page, visit.is_lenient = offsets_page(visit), True
    page.get_by_role("button", name="The end of the source").click()
    page.get_by_role("button", name="Apply …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type shop to go ahead").fill("shop")
    expect(dialog.get_by_role("button", name="Apply")).to_be_enabled()
    shop.ask("DELETE", "/offsets", headers={"tailrace-user": "ann <b>"})
    dialog.get_by_role("button", name="Apply").click()
    expect(dialog).to_contain_text("the offsets were edited meanwhile")
    expect(dialog).to_contain_text("(reset) by ann <b>@127.0.0.1")
    dialog.get_by_role("button", name="Start again from it").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("No offset yet")).to_be_visible()
    assert edits(shop)[-1]["kind"] == "reset", "what the other did was not overwritten"


def test_a_change_that_cannot_be_shows_the_rule_and_is_not_to_be_applied(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    shop.stop()
    page, apply = offsets_page(visit), "Apply …"
    json_text = page.locator("textarea")
    expect(page.get_by_role("button", name="As far back as the slot keeps")).to_be_visible()
    now = page.get_by_label("lsn", exact=True).input_value()
    json_text.fill(json_text.input_value().replace(now, str(int(now) - 4096)))
    expect(assessment(page).get_by_role("alert")).to_contain_text("from where on the source can still send changes")
    expect(page.get_by_text("the dry run does not allow it")).to_be_visible()
    page.get_by_label("lsn", exact=True).fill("many")
    expect(page.locator(".field", has_text="lsn").first).to_contain_text("'many' is not")
    expect(page.get_by_role("button", name=apply)).to_be_disabled()
    offset = shop.ask("GET", "/offsets")
    offset["offsets"][0]["offset"] |= dict.fromkeys(("lsn", "lsn_proc", "lsn_commit"), 1 << 60)
    json_text.fill(json.dumps(offset))
    expect(assessment(page).get_by_role("alert")).to_contain_text("where the source's own log ends")
    expect(page.get_by_role("button", name=apply)).to_be_disabled()
    json_text.fill("{")
    expect(page.get_by_text("This is not JSON")).to_be_visible()
    expect(page.get_by_role("button", name=apply)).to_be_disabled()
    page.get_by_role("button", name="Undo my changes").click()
    expect(json_text).to_have_value(json.dumps(shop.ask("GET", "/offsets"), indent=2))


def test_a_place_is_found_by_counting_transactions_back_and_by_a_time(shop: SmallShop, visit: Visit) -> None:
    shop.run()
    first = shop.commit(f"insert into customers values ({next(ROW)}, 'new')")
    shop.commit(f"insert into customers values ({next(ROW)}, 'new')")
    shop.stop()
    page = offsets_page(visit)
    wanted = shop.ask("GET", f"/log/transactions/{first}")["transaction"]
    position = expect(page.get_by_label("lsn", exact=True).locator("../.."))
    page.get_by_label("Back by transactions").fill("1")
    page.get_by_label("Back by transactions").press("Enter")
    position.to_contain_text(wanted["position"])
    expect(page.get_by_text(f"transaction {first}, committed")).to_be_visible()
    page.get_by_role("button", name="Undo my changes").click()
    page.get_by_label("To a time, UTC").fill("2020-01-01T00:00:00")
    page.get_by_label("To a time, UTC").press("Enter")
    expect(page.get_by_text("no cut that is kept is so old")).to_be_visible()
    page.get_by_label("To a time, UTC").fill("2099-01-01T00:00:00")
    page.get_by_label("To a time, UTC").press("Enter")
    position.to_contain_text(shop.ask("GET", "/cuts/newest")["position"])


@pytest.fixture
def legacy(shop: SmallShop, postgres: EmbeddedPostgres) -> Iterator[SmallShop]:
    """A connector that has not begun, and what a Debezium connector left in its database."""
    dsn = postgres.create_database("legacy")
    execute(dsn, "create table t (id int primary key); create publication dbz_publication for table t")
    with psycopg.connect(dsn) as conn:
        conn.execute("select pg_create_logical_replication_slot('old_slot', 'pgoutput')")
    config = config_for(dsn, slot_name="old_slot", publication_name="dbz_publication")
    shop.server.create("legacy", {**config, "slot.name": "old_slot"}, initial_state="STOPPED")
    yield SmallShop(shop.server, dsn, "legacy")
    shop.server.ask("DELETE", "/connectors/legacy")
    postgres.drop_database("legacy")


def test_a_file_of_debezium_is_dropped_looked_at_and_taken_over(
    legacy: SmallShop, visit: Visit, tmp_path: Path
) -> None:
    with psycopg.connect(legacy.dsn) as conn:
        found = conn.execute(
            "select confirmed_flush_lsn - '0/0' from pg_replication_slots where slot_name = 'old_slot'"
        )
        lsn = int(found.fetchone()[0])  # type: ignore[index]
    execute(legacy.dsn, "insert into t values (1)")
    page, visit.is_lenient = offsets_page(visit, "legacy"), True
    drop(page, '{"no": "offsets"}')
    expect(page.get_by_role("alert")).to_contain_text("the key {'no': 'offsets'} is not")
    drop(page, json.dumps({"partition": {"server": "old"}, "offset": {"lsn": lsn}}))
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Take over from old")
    dialog.get_by_label("Type legacy to go ahead").fill("legacy")
    dialog.get_by_role("button", name="Take over").click()
    expect(dialog).to_have_count(0)
    page.locator(".after").get_by_role("button", name="Start").click()
    legacy.wait_for("RUNNING")
    wait_until(lambda: [each["state"] for each in legacy.ask("GET", "/tables")] == ["live"])
    assert_equal(legacy.dsn, legacy.lake, "public.t")


def drop(page: Page, content: str) -> None:
    """A file, as a person drops it."""
    transfer = page.evaluate_handle(
        "(text) => { const held = new DataTransfer(); held.items.add(new File([text], 'offsets.json')); return held; }",
        content,
    )
    page.locator(".dropzone").dispatch_event("drop", {"dataTransfer": transfer})
