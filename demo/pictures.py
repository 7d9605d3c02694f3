"""`python -m demo.pictures`: the pictures of the console in the documents, made of a real server in a real browser.

Every page that the console's own navigation leads to, in light and dark, while orders come in. `python -m demo.pictures
cuts query` makes those alone. Each picture keeps 128 colours, which makes it small and can hardly be seen.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import struct
import sys
import tempfile
import threading
import time
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any, Literal

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from demo import shop
from demo.embedded import EmbeddedPostgres
from demo.page import NAME, PIN, page_of
from tailrace.server.serving import ServerSettings, Serving, serve
from tailrace.source.kinds import words_for

TARGET = Path("docs/images")
WIDTH, HEIGHT = 1280, 760
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SETTLE_MS, PINNED_MS, THEME_MS = 2500, 30_000, 500
STREAM_SECONDS = 60.0
"""How long orders come in before the first picture: charts need something to draw."""
PATIENCE_SECONDS = 300.0
COLOURS_MAX = 128
SQL = "select status, count(*) as orders, sum(total) as total\nfrom orders\ngroup by status\norder by status"
PIXELS = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < pixels.length; at += 32768) text += String.fromCharCode(...pixels.subarray(at, at + 32768));
  return btoa(text);
}"""


class ShownServer:
    """A server with connectors of all kinds, and what is asked of it."""

    def __init__(self, address: str, dsn: str) -> None:
        self.address = address
        self._dsn = dsn

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", "tailrace-user": "ada"}
        request = urllib.request.Request(f"{self.address}{path}", content, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def create(self, name: str, **more: str) -> None:
        words = words_for(self._dsn)
        config = {"connector.class": words.classes[0], **words.address(self._dsn), **more}
        self.ask("POST", "/connectors", {"name": name, "config": config})

    def wait_for(self, name: str, state: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := self.ask("GET", f"/connectors/{name}/progress"))["life"]["state"] != state or not found["cut"]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} is not {state}: {found['life']}")
            time.sleep(0.5)

    def prepare(self) -> None:
        """What a server has after some weeks: a connector that runs, one that is paused, one that needs a person."""
        self.create(NAME)
        self.create("billing", **{"table.include.list": "public.payments", "slot.name": "billing"})
        self.create("archive", **{"database.dbname": "archive", "slot.name": "archive"})
        self.wait_for(NAME, "RUNNING")
        self.wait_for("billing", "RUNNING")
        self.ask("PUT", "/connectors/billing/pause")
        time.sleep(STREAM_SECONDS)
        self.ask("POST", f"/connectors/{NAME}/snapshots", {"data-collections": ["public.payments"]})
        self.ask("PATCH", f"/connectors/{NAME}/config", {"lake.retain": "14d"})
        time.sleep(15)
        self.ask("POST", f"/connectors/{NAME}/verifications", {})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.ask("GET", f"/connectors/{NAME}/verifications")[0]["state"] == "running":
            if time.monotonic() > deadline:
                raise RuntimeError("the verification does not end")
            time.sleep(1)


@contextmanager
def shown_server(folder: Path) -> Iterator[ShownServer]:
    """A server whose shop is busy, inside the `with`."""
    ready: Queue[Serving] = Queue()
    with EmbeddedPostgres(folder / "postgres") as postgres:
        dsn = postgres.create_database("shop")
        shop.load(dsn)
        thread = threading.Thread(target=serve, args=[ServerSettings(folder / "home", port=0), ready.put])
        thread.start()
        serving = ready.get(timeout=PATIENCE_SECONDS)
        try:
            with shop.Workload(dsn, per_second=15):
                server = ShownServer(serving.address, dsn)
                server.prepare()
                yield server
        finally:
            serving.end()
            thread.join()


def places(page: Page, server: ShownServer) -> dict[str, str]:
    """Every page by its name in file names: what the console's navigation leads to, and the form that makes one."""
    page.goto(f"{server.address}/ui/c/{NAME}")
    page.locator("nav.tabs a").first.wait_for()
    links = page.locator("nav.tabs a, .side nav > ul a").evaluate_all("all => all.map((each) => each.pathname)")
    found = {path.removeprefix(f"/ui/c/{NAME}").removeprefix("/ui/").strip("/"): path for path in links}
    found["overview"], found["now"] = "/ui/", found.pop("", f"/ui/c/{NAME}")
    found["now"] = f"/ui/c/{NAME}"
    return found | {"new": "/ui/new"}


def show(page: Page, server: ShownServer, slug: str, path: str) -> None:
    """One page, with something to see on it."""
    page.goto(page_of(server.address) if slug == "now" else f"{server.address}{path}{_chosen(server, slug)}")
    page.locator("main h1").wait_for()
    page.wait_for_timeout(SETTLE_MS)
    if slug == "query":
        page.locator("textarea").first.fill(SQL)
        page.keyboard.press("Control+Enter")
        page.get_by_text("delivered").first.wait_for()
    if slug == "now":
        # Its line begins when it is looked at.
        page.get_by_text(PIN).first.wait_for()
        page.wait_for_timeout(PINNED_MS)
    page.evaluate("document.activeElement?.blur()")


def _chosen(server: ShownServer, slug: str) -> str:
    """Two cuts, for the page that compares them."""
    if slug != "cuts":
        return ""
    newest = [each["seq"] for each in server.ask("GET", f"/connectors/{NAME}/cuts?limit=20")]
    return f"?cuts={newest[-1]},{newest[0]}"


def with_few_colours(page: Page, png: bytes) -> bytes:
    """The same picture with a palette. The browser reads it: nothing else here can."""
    width, height = struct.unpack(">II", png[16:24])
    raw = base64.b64decode(page.evaluate(PIXELS, base64.b64encode(png).decode()))
    pixels = np.frombuffer(raw, np.uint8).reshape(-1, 4)[:, :3]
    colours, places_of, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    kept = _palette(colours.astype(np.int32), counts)
    nearest = np.array([np.abs(kept - each).sum(axis=1).argmin() for each in colours.astype(np.int32)], np.uint8)
    rows = nearest[places_of.reshape(-1)].reshape(height, width)
    lines = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", kept.astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, parts))


def _palette(colours: Any, counts: Any) -> Any:
    """The colours that most pixels have, and those that are least like any of them: a mark may be small."""
    kept = colours[np.argsort(-counts)[: COLOURS_MAX // 2]]
    apart = np.array([np.abs(kept - each).sum(axis=1).min() for each in colours])
    while len(kept) < COLOURS_MAX and apart.any():
        added = colours[(apart * counts**0.25).argmax()]
        kept = np.vstack([kept, added])
        apart = np.minimum(apart, np.abs(colours - added).sum(axis=1))
    return kept


def _chunk(part: tuple[bytes, bytes]) -> bytes:
    kind, content = part
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def draw(browser: Browser, server: ShownServer, wanted: list[str]) -> None:
    """Every page that is wanted, or all, into the documents' folder."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
    page, reader = context.new_page(), context.new_page()
    for slug, path in places(page, server).items():
        if wanted and slug not in wanted:
            continue
        show(page, server, slug, path)
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            page.wait_for_timeout(THEME_MS)
            picture = with_few_colours(reader, page.screenshot())
            target = TARGET / f"console-{slug}-{theme}.png"
            target.write_bytes(picture)
            print(f"{target}: {len(picture):,} bytes", flush=True)
    context.close()


def main(wanted: list[str]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("TAILRACE_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory(prefix="tailrace-pictures-") as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path)
        with shown_server(Path(folder)) as server:
            draw(browser, server, wanted)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
