"""Two hundred connectors: the overview is there within a second, and stays in hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, expect
from tests.browsing import visiting
from tests.serving import Served, config_for, serving

CONNECTORS = 200
PAINT_MS_MAX = 1000
TRIES = 12
MARKS = f"""
new MutationObserver((_, observer) => {{
  if (document.querySelectorAll("li.connector").length < {CONNECTORS}) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => performance.mark("painted")));
}}).observe(document, {{ childList: true, subtree: true }});
"""
PAINTED = """
new Promise((done) => {
  const look = () => {
    const [found] = performance.getEntriesByName("painted");
    if (found) done(found.startTime); else setTimeout(look, 10);
  };
  look();
})
"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of many connectors that are stopped."""
    with serving(tmp_path_factory.mktemp("crowd") / "home") as server:
        for number in range(CONNECTORS):
            config = config_for(f"postgresql://ann@127.0.0.1:1/database_{number % 7}", topic_prefix=f"prefix_{number}")
            server.create(f"connector-{number:03}", config, initial_state="STOPPED")
        yield server


def test_two_hundred_connectors_are_painted_within_a_second(crowd: Served, browser: Browser) -> None:
    took: list[float] = []
    # Without anything between the browser and the server.
    with closing(browser.new_context()) as context:
        # The machine may be at something else meanwhile: one time of them shows what the page needs.
        while len(took) < TRIES and min(took, default=PAINT_MS_MAX) >= PAINT_MS_MAX:
            page = context.new_page()
            page.add_init_script(MARKS)
            page.goto(crowd.address + "/ui/")
            expect(page.locator("li.connector")).to_have_count(CONNECTORS)
            took.append(page.evaluate(PAINTED))
            page.close()
    print(f"painted after {', '.join(f'{each:.0f}' for each in took)} ms")
    assert min(took) < PAINT_MS_MAX


def test_two_hundred_connectors_are_searched(crowd: Served, browser: Browser) -> None:
    with visiting(browser, crowd.address) as visit:
        page = visit.open("/ui/")
        page.get_by_label("Find a connector").fill("connector-19")
        expect(page.locator("li.connector")).to_have_count(10)
        page.get_by_label("Find a connector").fill("database_3")
        expect(page.locator("li.connector").first).to_contain_text("connector-003")
        page.get_by_label("Find a connector").fill("nothing like it")
        expect(page.get_by_text("No connector fits")).to_be_visible()
        page.get_by_role("button", name="Show all").click()
        expect(page.locator("li.connector")).to_have_count(CONNECTORS)
        expect(page.get_by_label("Find a connector")).to_have_value("")
        expect(page.get_by_role("link", name="140 more …")).to_be_visible()
