"""The console of one lake without a server: the same pages, and what cannot be done there says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browsing import assert_accessible, visiting
from tests.doors.one_thread import OneThread
from tests.integration.lake.equality import execute
from tests.lake_consoles import console_from_outside, running_with_console
from tests.postgres import wait_until

from tailrace.connector.connector import Connector
from tailrace.lake.home import LakeHome
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "<img src=x onerror=alert(1)>"


def test_a_stopped_lake_is_shown_and_its_buttons_say_who_starts_it(browser: Browser, database: str, lake: Path) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    connector = Connector(ConnectorSettings(lake, once=True), source_of(database), OneThread())
    connector.start()
    assert connector.wait(60)
    with console_from_outside(lake) as console, visiting(browser, console.address) as visit:
        page = visit.open(console.page.removeprefix(console.address))
        expect(page.locator("h1")).to_have_text(lake.name)
        expect(page.locator(".title")).to_contain_text("stopped")
        for action in ("Pause", "Resume", "Stop", "Restart"):
            button = page.locator(".head").get_by_role("button", name=action, exact=True)
            expect(button).to_have_attribute("aria-disabled", "true")
            expect(button).to_have_attribute(
                "title",
                f"{action}: this console looks at the lake from outside: its run "
                "belongs to whoever started tailrace sync",
            )
        assert_accessible(page)
        page.get_by_role("link", name="Configuration").click()
        expect(page.get_by_text("the options of tailrace sync are its configuration")).to_be_visible()
        page.get_by_role("link", name="Offsets").click()
        expect(page.get_by_role("button", name="Reset …")).to_be_enabled()


def test_a_run_is_paused_and_resumed_in_its_own_console(browser: Browser, database: str, lake: Path) -> None:
    execute(database, "create table t (id int primary key); insert into t values (1)")
    with running_with_console(database, lake) as (console, _), visiting(browser, console.address) as visit:
        wait_until(lambda: LakeHome(lake).source() is not None and LakeHome(lake).cuts.newest() is not None)
        page = visit.open(console.page.removeprefix(console.address))
        title = page.locator(".title")
        expect(title).to_contain_text("running")
        page.get_by_role("button", name="Pause", exact=True).click()
        expect(title).to_contain_text("paused")
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(title).to_contain_text("stopped")
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(title).to_contain_text("running")
