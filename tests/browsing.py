"""A browser that a test drives: Debian's Chromium by way of Playwright. It reaches one server and nothing else.

A page that asks another host for anything, or says an error on its console, fails the test that opened it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Playwright, Request, Route

CHROMIUM = "TAILRACE_CHROMIUM"
WAIT_MS = 30_000
"""How long a page may take to show what is expected: it watches, so waiting long costs nothing where all is well."""
WIDE, NARROW = 1280, 390
Theme = Literal["light", "dark"]
_NAMES_NO_HOST = ("data", "blob", "about")


def chromium_path() -> str | None:
    """The browser that tests use; None where there is none."""
    return os.environ.get(CHROMIUM) or shutil.which("chromium")


@contextmanager
def chromium(playwright: Playwright, path: str) -> Iterator[Browser]:
    """One browser. No name leads anywhere in it: the server is reached by its number."""
    rules = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    browser = playwright.chromium.launch(executable_path=path, args=[rules])
    try:
        yield browser
    finally:
        browser.close()


@dataclass
class Visit:
    """What one test does in a browser, with cookies and storage of its own."""

    context: BrowserContext
    address: str
    """Of the server, as a URL."""
    faults: list[str] = field(default_factory=list)
    """Requests to other hosts, and errors that pages said."""
    is_lenient: bool = False
    """Set by a test that takes the server away or asks for what is refused: the browser says that a request failed."""

    def page(self) -> Page:
        """Another tab."""
        page = self.context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.faults.append(f"{page.url} threw: {error}"))
        return page

    def open(self, path: str) -> Page:
        """A tab that shows a page of the server."""
        page = self.page()
        page.goto(self.address + path)
        return page

    def pass_on(self, route: Route, request: Request) -> None:
        """A request of any page: only the server is asked."""
        asked = urlsplit(request.url)
        if asked.scheme in _NAMES_NO_HOST or asked.netloc == urlsplit(self.address).netloc:
            route.continue_()
        else:
            self.faults.append(f"a page asked another host: {request.url}")
            route.abort()

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not (self.is_lenient and message.text.startswith("Failed to load resource")):
            self.faults.append(f"{message.location.get('url')} said: {message.text}")


@contextmanager
def visiting(browser: Browser, address: str, width: int = WIDE, theme: Theme = "light", **more: Any) -> Iterator[Visit]:
    """A visit; leaving it fails where a page misbehaved."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=theme, reduced_motion="reduce", **more
    )
    try:
        visit = Visit(context, address)
        context.route("**/*", visit.pass_on)
        yield visit
    finally:
        context.close()
    assert not visit.faults, f"pages misbehaved: {visit.faults}"


def assert_accessible(page: Page) -> None:
    """axe finds nothing wrong with what is shown now."""
    found = Axe().run(page).response["violations"]
    told = [(each["id"], [node["html"][:160] for node in each["nodes"]]) for each in found]
    assert not told, f"{page.url}: {told}"


def assert_fits(page: Page) -> None:
    """The page is not wider than its window: nothing has to be scrolled sideways."""
    widths = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert widths[0] <= widths[1], f"{page.url} is {widths[0]} wide in a window of {widths[1]}: {_widest(page)}"


def _widest(page: Page) -> Any:
    """What reaches beyond the window."""
    return page.evaluate(
        "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)"
        ".slice(0, 5).map((e) => e.outerHTML.slice(0, 120))"
    )
