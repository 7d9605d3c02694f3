"""The log, the messages, the source and the feed of one connector over REST, on a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from demo.embedded import EmbeddedPostgres
from tests.lake_consoles import LakeConsole, console_from_outside
from tests.postgres import wait_until
from tests.small_shop import SmallShop, small_shop

from tailrace.server.api.feed.feed import CONFIGURATIONS_AT_ONCE

NAMES = {"customers": "public.customers", "orders": "public.orders", "payments": "public.payments"}


@pytest.fixture
def shop(postgres: EmbeddedPostgres) -> Iterator[SmallShop]:
    dsn = postgres.create_database("log_routes")
    with TemporaryDirectory(prefix="tailrace-home-") as home, small_shop(dsn, Path(home) / "home") as found:
        yield found
        found.server.ask("DELETE", "/connectors/shop?drop_source=true", status=204)
    postgres.drop_database("log_routes")


def transactions(shop: SmallShop, asked: str = "") -> Any:
    return shop.ask("GET", f"/log/transactions?{asked}")


def test_transactions_are_listed_newest_first_with_their_tables_and_changes(shop: SmallShop) -> None:
    first = shop.commit("insert into customers values (100, 'a'), (101, 'b')")
    second = shop.commit("update orders set note = 'seen' where id = 1; delete from payments where id = 1")
    third = shop.commit("delete from customers where id = 100")
    found = transactions(shop, f"after={first - 1}")
    told = [(each["seq"], each["changes"], each["tables"]) for each in found["transactions"]]
    assert told == [
        (third, 1, ["public.customers"]),
        (second, 2, ["public.orders", "public.payments"]),
        (first, 2, ["public.customers"]),
    ]
    assert found["next"] is None
    assert (found["oldest"], found["newest"]) == (1, third)
    assert all(each["is_published"] and each["committed"].endswith("Z") for each in found["transactions"])
    for table in ("customers", "public.customers"):
        chosen = transactions(shop, f"after={first - 1}&table={table}")["transactions"]
        assert [each["seq"] for each in chosen] == [third, first]
    until = found["transactions"][2]["committed"]
    assert transactions(shop, f"after={first - 1}&until={until}")["transactions"][0]["seq"] == first


def test_pages_of_transactions_have_each_once(shop: SmallShop) -> None:
    for number in range(4):
        shop.commit(f"insert into customers values ({2000 + number}, 'n')")
    shop.commit("insert into orders values (2000, 1, 1, 'last')")
    everything = [each["seq"] for each in transactions(shop, "limit=500")["transactions"]]
    for asked in ("", "&table=orders", "&table=customers"):
        whole = [each["seq"] for each in transactions(shop, f"limit=500{asked}")["transactions"]]
        paged: list[int] = []
        before: int | None = max(everything) + 1
        while before is not None:
            page = transactions(shop, f"limit=2&before={before}{asked}")
            paged += [each["seq"] for each in page["transactions"]]
            before = page["next"]
        assert paged == whole
        assert whole


def test_values_are_shown_only_when_they_are_asked_for(shop: SmallShop) -> None:
    seq = shop.commit(
        "insert into orders values (500, 2, 12.30, '<img src=x onerror=alert(1)>');"
        "update orders set total = 13, note = null where id = 500; delete from orders where id = 500; truncate payments"
    )
    plain = shop.server.http.get(f"/connectors/shop/log/transactions/{seq}").text
    assert "onerror" not in plain
    assert "12.30" not in plain
    found = shop.ask("GET", f"/log/transactions/{seq}?values=true")
    told = [(each["kind"], each["table"]) for each in found["changes"]]
    assert [kind for kind, _ in told] == ["insert", "update", "delete", "truncate"]
    assert [table for _, table in told] == [NAMES["orders"]] * 3 + [NAMES["payments"]]
    inserted, updated, deleted, truncated = found["changes"]
    row = {"id": "500", "customer_id": "2", "total": "12.30", "note": "<img src=x onerror=alert(1)>"}
    assert (inserted["before"], inserted["after"]) == (None, row)
    assert updated["after"] == row | {"total": "13.00", "note": None}
    assert deleted["after"] is None
    assert deleted["before"] == {"id": "500"}, "the source sends the key alone"
    assert (truncated["before"], truncated["after"]) == (None, None)
    assert {each["problem"] for each in found["changes"]} == {None}


def test_changes_come_in_pages_and_of_one_table(shop: SmallShop) -> None:
    seq = shop.commit(
        "insert into customers select n, 'many' from generate_series(3000, 3249) n;"
        "insert into orders values (3000, 3000, 1, 'one')"
    )
    kinds: list[str] = []
    after: int | None = -1
    while after is not None:
        page = shop.ask("GET", f"/log/transactions/{seq}?limit=100&after={after}")
        kinds += [each["table"] for each in page["changes"]]
        after = page["next"]
    assert kinds == [NAMES["customers"]] * 250 + [NAMES["orders"]]
    with_values = shop.ask("GET", f"/log/transactions/{seq}?limit=1000&values=true")
    assert (len(with_values["changes"]), with_values["next"] is None) == (100, False)
    chosen = shop.ask("GET", f"/log/transactions/{seq}?table=orders&values=true")
    assert [each["after"]["note"] for each in chosen["changes"]] == ["one"]


def test_values_that_are_long_are_cut_and_larger_ones_left_out(shop: SmallShop) -> None:
    seq = shop.commit(
        "insert into customers values (4000, repeat('x', 5000)), (4001, repeat('y', 2000000)), (4002, 'z')"
    )
    long, larger, small = shop.ask("GET", f"/log/transactions/{seq}?values=true")["changes"]
    assert (long["after"]["name"], long["cut_short"]) == ("x" * 1000, ["name"])
    assert (larger["after"], larger["bytes"] > 2_000_000) == (None, True)
    assert "too large" in larger["problem"]
    assert small["after"]["name"] == "z"


def test_a_record_is_shown_with_the_shape_that_it_was_logged_with(shop: SmallShop) -> None:
    first = shop.commit("insert into customers values (7000, 'one', 'a@b.c')")
    second = shop.commit("alter table customers drop column email; insert into customers values (7001, 'two')")
    third = shop.commit("alter table customers rename column name to called; insert into customers values (7002, 'x')")
    rows = [
        [each["after"] for each in shop.ask("GET", f"/log/transactions/{seq}?values=true")["changes"]]
        for seq in (first, second, third)
    ]
    assert rows == [
        [{"id": "7000", "name": "one", "email": "a@b.c"}],
        [{"id": "7001", "name": "two"}],
        [{"id": "7002", "called": "x"}],
    ]


def test_the_log_says_how_large_it_is_and_who_needs_it(shop: SmallShop) -> None:
    newest = shop.commit("insert into customers values (5000, 'n')")
    found = shop.ask("GET", "/log?totals=true")
    assert (found["oldest"], found["newest"]) == (1, newest)
    assert found["bytes"] > 0
    assert found["totals"]["changes"] >= newest
    assert {each["kind"] for each in found["holders"]} == {"consumer"}
    segments = shop.ask("GET", "/log/segments")
    assert (len(segments["segments"]), segments["next"]) == (found["segments"], None)
    assert segments["segments"][0]["is_written"]
    assert shop.ask("GET", "/log")["totals"] is None


def test_what_is_not_there_is_not_found(shop: SmallShop) -> None:
    for path in ("/log/transactions/1000000", "/log/transactions?table=none", "/log/transactions/1?table=none"):
        assert "hint" in shop.ask("GET", path, status=404)["message"]
    for path in ("/log/transactions/0", "/log/transactions/x", "/log/transactions?until=2026-01-01T00:00:00"):
        shop.ask("GET", path, status=400)


def test_messages_are_answered_by_level_and_text_in_pages(shop: SmallShop) -> None:
    for number in range(3):
        shop.commit(f"insert into customers values ({6000 + number}, 'said')")
    found = shop.ask("GET", "/messages?search=CutPublished&limit=2")
    assert [each["message"] for each in found["messages"]] == ["CutPublished"] * 2
    assert found["messages"][0]["time"] >= found["messages"][1]["time"]
    older = shop.ask("GET", f"/messages?search=CutPublished&limit=1&before={found['next']}")["messages"]
    assert older[0]["id"] not in {each["id"] for each in found["messages"]}
    assert shop.ask("GET", "/messages?level=critical")["messages"] == []
    assert "said" not in str(shop.ask("GET", "/messages?limit=1000"))
    shop.ask("GET", "/messages?before=nonsense", status=400)
    assert "messages" in shop.server.ask("GET", "/messages")


def test_the_source_says_what_it_keeps_for_the_lake(shop: SmallShop) -> None:
    shop.commit("insert into customers values (8000, 'kept')")
    found = shop.ask("GET", "/source")
    assert (found["kind"], found["facts"]["wal_status"]) == ("postgres", "reserved")
    assert found["facts"]["server"].startswith("Postgres ")
    assert found["facts"]["slot"] == found["facts"]["publication"]
    assert found["kept_from"] == found["facts"]["restart"]
    assert found["bytes"]["kept_to_end"] > 0
    assert found["bytes"]["log_to_end"] >= 0
    assert (found["risk"], found["hint"]) == (None, None)
    assert found["cut"] == shop.ask("GET", "/cuts/newest")["position"]


def test_a_source_that_cannot_be_reached_is_an_error_of_its_own(shop: SmallShop) -> None:
    shop.commit("insert into customers values (6500, 'before')")
    with console_from_outside(shop.lake, "postgresql://nobody@127.0.0.1:1/none") as console:
        found = console.ask("GET", f"/connectors/{console.name}/source", status=503)
        assert "\nhint: " in found["message"]
        # What the lake's files say is answered all the same.
        assert console.ask("GET", f"/connectors/{console.name}/log")["newest"] > 0


def test_every_configuration_is_in_the_feed_once(shop: SmallShop) -> None:
    config = shop.ask("GET", "/config") | {"name": "edited"}
    shop.server.create("edited", config, initial_state="STOPPED")
    for number in range(CONFIGURATIONS_AT_ONCE + 2):
        changed = {"lake.publish.interval.ms": str(200 + number)}
        shop.server.ask("PATCH", "/connectors/edited/config", changed, headers={"tailrace-user": "ann"})
    entries = shop.server.ask("GET", "/connectors/edited/feed?limit=500")["entries"]
    told = [(each["text"].partition(":")[0], each["text"].partition(": ")[2]) for each in entries]
    numbers = [int(name.removeprefix("configuration ")) for name, _ in told]
    assert numbers == sorted(set(numbers), reverse=True)
    assert [what for _, what in told] == ["lake.publish.interval.ms changed"] * (CONFIGURATIONS_AT_ONCE + 2) + [
        "the connector was created"
    ]
    assert "ann" in entries[0]["who"]
    shop.server.ask("DELETE", "/connectors/edited", status=204)


def test_the_feed_tells_what_happened_newest_first_in_pages(shop: SmallShop) -> None:
    shop.pause()
    shop.ask("PUT", "/resume", status=202)
    shop.run()
    shop.ask("POST", "/tables/customers/resync", status=202)
    wait_until(lambda: has_landed(shop), 30)
    everything = feed(shop, "limit=500")
    entries = everything["entries"]
    assert everything["next"] is None
    assert [each["at"] for each in entries] == sorted((each["at"] for each in entries), reverse=True)
    assert {"state", "table", "copy", "configuration", "source"} <= {each["kind"] for each in entries}
    assert told(entries[-1]) == ("configuration", None)
    assert "created" in entries[-1]["text"]
    assert ("state", "paused") in map(told, entries)
    again = next(each for each in entries if told(each) == ("table", "resyncing"))
    assert again["table"] == "public.customers"
    paged: list[Any] = []
    before: str | None = ""
    while before is not None:
        page = feed(shop, f"limit=3{before}")
        paged += page["entries"]
        before = None if page["next"] is None else f"&before={page['next']}"
    assert paged == entries


def feed(shop: SmallShop, asked: str = "limit=20") -> Any:
    return shop.ask("GET", f"/feed?{asked}")


def has_landed(shop: SmallShop) -> bool:
    """Whether the newest table that was copied again is live."""
    states = [told(each) for each in feed(shop, "limit=100")["entries"]]
    again = ("table", "resyncing")
    return again in states and ("table", "live") in states[: states.index(again)]


def told(entry: Any) -> tuple[str, str | None]:
    return entry["kind"], entry["state"]


def test_a_lake_that_is_looked_at_from_outside_answers_the_same(shop: SmallShop) -> None:
    seq = shop.commit("insert into payments (id, order_id) values (9000, 1)")
    with console_from_outside(shop.lake) as console:

        def ask(path: str, status: int = 200) -> Any:
            return console.ask("GET", f"/connectors/{console.name}{path}", status=status)

        assert ask(f"/log/transactions/{seq}?values=true")["changes"][0]["after"]["id"] == "9000"
        assert ask("/log/segments")["segments"]
        assert ask("/messages?search=CutPublished&limit=1")["messages"]
        kinds = {each["kind"] for each in ask("/feed?limit=500")["entries"]}
        assert kinds >= {"state", "table", "copy", "source"}
        assert "--dsn" in ask("/source", 409)["message"]
        assert console.ask("GET", "/messages", status=409)["message"]
        assert console.ask("GET", "/spark")["is_up"] is False
        assert console.ask("GET", "/tailrace")["home"] is None
    with console_from_outside(shop.lake, shop.dsn) as console:
        assert ask_source(console)["facts"]["wal_status"] == "reserved"


def ask_source(console: LakeConsole) -> Any:
    return console.ask("GET", f"/connectors/{console.name}/source")
