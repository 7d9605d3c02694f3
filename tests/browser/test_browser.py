"""The browser of the other tests: it is the one that we know to work, and it tells on pages that misbehave."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from threading import Thread

import pytest
from playwright.sync_api import Browser
from tests.browsing import chromium_path, visiting

DRIVER, BROWSER_MAJOR_MIN = "1.65.2", 156
"""The pair that is known to work. A browser that is much newer than its driver is where trouble began for others."""


def test_the_driver_and_the_browser_are_a_pair_that_is_known_to_work(browser: Browser) -> None:
    assert version("playwright") == DRIVER
    assert int(browser.version.partition(".")[0]) >= BROWSER_MAJOR_MIN, browser.version
    path = chromium_path()
    assert path is not None
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    assert browser.version in told, "the browser that was started is the one that is installed"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<img src='http://example.com/x.png'>", "asked another host: http://example.com/x.png"),
        ("<script>fetch('http://127.0.0.1:1/')</script>", "asked another host: http://127.0.0.1:1/"),
        ("<script>console.error('it broke')</script>", "said: it broke"),
        ("<script>throw Error('it broke')</script>", "threw: it broke"),
        ("<img src='/missing.png'>", "said: Failed to load resource"),
    ],
    ids=["picture", "fetch", "console", "error", "missing"],
)
def test_a_page_that_misbehaves_fails_its_test(browser: Browser, body: str, fault: str) -> None:
    with (
        _one_page(body) as address,
        pytest.raises(AssertionError, match="misbehaved") as failed,
        visiting(browser, address) as visit,
    ):
        visit.open("/").wait_for_load_state("networkidle")
    assert fault in str(failed.value)


@contextmanager
def _one_page(body: str) -> Iterator[str]:
    """A server that has one page; its address."""
    page = f"<!doctype html><title>page</title>{body}".encode()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_OnePage, page)) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class _OnePage(BaseHTTPRequestHandler):
    def __init__(self, page: bytes, *more: object) -> None:
        self._page = page
        super().__init__(*more)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self._page if self.path == "/" else b"")

    def log_message(self, *_: object) -> None:
        pass
