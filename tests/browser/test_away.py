"""The server goes away and comes back, and sessions end, while pages are open: they say so and find their way back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browsing import Visit, assert_accessible, assert_fits, visiting
from tests.serving import Served, config_for, process, serving

NOWHERE = "postgresql://ann@127.0.0.1:1/shop"
TOKEN = "a-token-of-these-tests"
OFFSETS = "/ui/c/shop/offsets"


def test_figures_turn_grey_while_the_server_is_away_and_come_back_by_themselves(
    browser: Browser, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as found:
        listen = f"127.0.0.1:{found.getsockname()[1]}"
    with process(home, "--listen", listen) as first, visiting(browser, first.address) as visit:
        first.create("shop", config_for(NOWHERE), initial_state="STOPPED")
        pages = [visit.open("/ui/"), visit.open("/ui/c/shop")]
        for page in pages:
            expect(page.locator("main .state").first).to_contain_text("stopped")
            page.evaluate("window.isTheSame = true")
        visit.is_lenient = True
        first.process.kill()
        for page in pages:
            expect(page.get_by_role("status").filter(has_text="The server is not heard since")).to_be_visible()
            assert "grayscale" in page.locator("main .card").first.evaluate("(card) => getComputedStyle(card).filter")
            expect(page.locator("main .state").first).to_contain_text("stopped")
            assert_accessible(page)
        pages[1].get_by_role("button", name="Resume", exact=True).click()
        expect(pages[1].get_by_role("alert").first).to_contain_text("the server cannot be reached")
        first.process.wait()
        with process(home, "--listen", listen) as second:
            second.create("another", config_for(NOWHERE, topic_prefix="another"), initial_state="STOPPED")
            for page in pages:
                expect(page.get_by_text("The server is not heard")).to_have_count(0)
                expect(page.locator(".side").get_by_role("link", name="another")).to_be_visible()
                assert page.evaluate("window.isTheSame"), "it was not loaded again"
                assert page.locator("main .card").first.evaluate("(card) => getComputedStyle(card).filter") == "none"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that wants a token."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    with serving(folder / "home", token_file=folder / "token") as server:
        server.create("shop", config_for(NOWHERE), initial_state="STOPPED")
        yield server


@pytest.fixture
def stranger(browser: Browser, guarded: Served) -> Iterator[Visit]:
    """Someone who has not logged in yet."""
    with visiting(browser, guarded.address) as visit:
        visit.is_lenient = True
        yield visit


def log_in(page: Page, token: str = TOKEN) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()


def test_the_token_is_asked_for_once_and_no_script_can_read_what_is_kept(stranger: Visit) -> None:
    page = stranger.open(f"{OFFSETS}?a=b")
    expect(page).to_have_url(f"{stranger.address}/ui/login?then={quote(f'{OFFSETS}?a=b', safe='')}")
    expect(page.get_by_label("Token")).to_be_focused()
    assert_accessible(page)
    assert_fits(page)
    page.get_by_label("Your name, for histories").fill("ann")
    log_in(page, "not the token")
    expect(page.get_by_text("That is not the token.")).to_be_visible()
    assert "not the token" not in page.url
    log_in(page)
    expect(page).to_have_url(f"{stranger.address}{OFFSETS}?a=b")
    expect(page.get_by_text("No offset yet")).to_be_visible()
    expect(page.get_by_text("Acting as ann")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    (cookie,) = stranger.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert TOKEN not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    other = stranger.open("/ui/")
    expect(other.locator("li.connector")).to_contain_text("stopped")
    elsewhere = stranger.open("/ui/login?then=https://example.com/")
    elsewhere.get_by_role("link", name="To the console").click()
    expect(elsewhere).to_have_url(f"{stranger.address}/ui/")


@pytest.mark.parametrize("way", ["it ran out", "it was ended elsewhere"])
def test_where_the_session_ends_while_a_page_is_open_one_logs_in_and_is_back_there(stranger: Visit, way: str) -> None:
    page = stranger.open(OFFSETS)
    log_in(page)
    expect(page.get_by_role("heading", name="Reset")).to_be_visible()
    if way == "it ran out":
        stranger.context.clear_cookies()
    else:
        stranger.context.request.delete(f"{stranger.address}/session", headers={"origin": stranger.address})
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert urlsplit(page.url).query == f"then={quote(OFFSETS, safe='')}"
    log_in(page)
    expect(page).to_have_url(stranger.address + OFFSETS)
    expect(page.locator(".head .state")).to_contain_text("stopped")
    expect(page.get_by_text("The server is not heard")).to_have_count(0)
