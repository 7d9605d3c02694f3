"""A disk that is full, or fails for a while: the table waits, the others continue, and it heals by itself."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.doors.script import Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.postgres import wait_until
from tests.running import Running, connector_of, running, sync_once

import tailrace
from tailrace.errors import DefiniteError, TransientError
from tailrace.lake.home import LakeHome
from tailrace.model.backoff import Backoff
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, Retries
from tailrace.source import kinds

ORDERS, LINES = "shop.orders", "shop.lines"
OFTEN = Retries(publish=Backoff(0.1, 0.1), patience_seconds=0.5)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script = Script(tmp_path / "shop.jsonl")
    for table in (ORDERS, LINES):
        script.create_table(table, {"id": "bigint", "note": "string"}, key=["id"])
        script.transaction([Insert(table, {"id": n, "note": "first"}) for n in range(20)])
    return script


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


@contextmanager
def full_disk(path: Path) -> Iterator[None]:
    """The table in this folder has a disk of its own, with no room left."""
    with pytest.raises(OSError, match="No space left"):
        fill(path / "filler")
    yield
    (path / "filler").unlink()


@contextmanager
def failing_disk(path: Path) -> Iterator[None]:
    """What is written there cannot be synced."""
    really = os.fsync

    def sync(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(path)):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        really(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        yield


@contextmanager
def mounted(path: Path, size: str = "256k") -> Iterator[None]:
    """What is in this folder lies on a small disk of its own."""
    content = path.rename(path.with_name("content"))
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    shutil.copytree(content, path, dirs_exist_ok=True)
    shutil.rmtree(content)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def newest_has(run: Running, *tables: str) -> bool:
    cut = run.connector.status().cut
    return cut is not None and cut.seq == run.reader.refresh().seq and set(cut.tables) == set(tables)


def rows(lake: Path, table: str) -> list[dict[str, Any]]:
    return sorted(tailrace.arrow(lake, table).to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("fault", "told"), [(full_disk, "no space left on device"), (failing_disk, "input/output error")]
)
def test_a_passing_fault_of_one_table_s_disk_holds_up_that_table_alone_and_heals_by_itself(
    tmp_path: Path, script: Script, fault: Any, told: str
) -> None:
    lake = tmp_path / "lake"
    orders = lake / "shop" / "orders"
    source = ScriptedSource(str(script.path))
    sync_once(ConnectorSettings(lake, once=True), source)
    with ExitStack() as stack:
        if fault is full_disk:
            stack.enter_context(mounted(orders))
        run = stack.enter_context(running(ConnectorSettings(lake, publish_every_seconds=0.05, retries=OFTEN), source))
        run.wait_for_log()
        before = set(orders.glob("*.parquet"))
        with fault(orders):
            for table in (ORDERS, LINES):
                script.transaction([Update(table, (n,), {"note": "second"}) for n in range(20)])
            run.wait_for(lambda: told in str(run.connector.status().trouble))
            assert rows(lake, ORDERS) == script.state(ORDERS), "a live read does not wait for the disk"
            run.wait_for(lambda: newest_has(run, LINES))
            assert run.connector.tables()[TableId("shop", "orders")].state is TableState.LIVE
            with pytest.raises(DefiniteError, match="could not be published up to this cut") as caught:
                rows(lake, ORDERS)
            assert "--as-of" in str(caught.value.hint)
            # Nothing is left of what failed, but the next attempt may have a file at this moment.
            wait_until(lambda: set(orders.glob("*.parquet")) == before)
        run.wait_for(lambda: newest_has(run, ORDERS, LINES))
        run.wait_for(lambda: run.connector.status().trouble is None)
        for table in (ORDERS, LINES):
            assert rows(lake, table) == script.state(table)
        assert LakeHome(lake).tables.load()[TableId("shop", "orders")].copy == 1, "it was not copied again"


def test_a_run_that_is_to_end_does_so_with_the_fault_that_lasts(tmp_path: Path, script: Script) -> None:
    lake = tmp_path / "lake"
    settings, source = ConnectorSettings(lake, once=True, retries=OFTEN), ScriptedSource(str(script.path))
    sync_once(settings, source)
    script.transaction([Update(ORDERS, (1,), {"note": "second"})])
    with failing_disk(lake / "shop" / "orders"):
        connector = connector_of(settings, source)
        connector.start()
        with pytest.raises(TransientError, match="input/output error"):
            connector.wait(120)


def test_a_start_on_a_full_disk_waits_and_continues_by_itself_and_prints_nothing(
    tmp_path: Path, script: Script, capfd: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    source = ScriptedSource(str(script.path))
    sync_once(ConnectorSettings(lake, once=True), source)
    script.create_table("shop.new", {"id": "bigint"}, key=["id"])
    with mounted(lake, "16m"):
        # As after a kill: all tables are looked at again, and that is written down.
        (lake / "_tailrace" / "left.json").unlink()
        (lake / "_tailrace" / "tailrace.log").unlink()
        with (
            full_disk(lake),
            running(ConnectorSettings(lake, publish_every_seconds=0.05, retries=OFTEN), source) as run,
        ):
            run.wait_for(lambda: "no space left on device" in str(run.connector.status().trouble))
            script.transaction([Update(ORDERS, (1,), {"note": "second"})])
            (lake / "filler").unlink()
            run.wait_for(lambda: newest_has(run, ORDERS, LINES, "shop.new"))
            run.wait_for(lambda: run.connector.status().trouble is None)
            assert rows(lake, ORDERS) == script.state(ORDERS)
            (lake / "filler").touch()
    printed = capfd.readouterr()
    assert "Traceback" not in printed.out + printed.err
    assert "Logging error" not in printed.err


def test_with_once_a_disk_that_stays_full_ends_the_run(tmp_path: Path, script: Script) -> None:
    lake = tmp_path / "lake"
    source = ScriptedSource(str(script.path))
    sync_once(ConnectorSettings(lake, once=True), source)
    script.create_table("shop.new", {"id": "bigint"}, key=["id"])
    with mounted(lake, "16m"), full_disk(lake):
        connector = connector_of(ConnectorSettings(lake, once=True, retries=OFTEN), source)
        connector.start()
        with pytest.raises(TransientError, match="no space left on device") as caught:
            assert connector.wait(60)
        assert caught.value.hint == "make room on the disk: it continues by itself"
    assert sync_once(ConnectorSettings(lake, once=True), source)["shop.new"] is TableState.LIVE


def test_messages_that_cannot_be_written_stop_nothing_and_print_nothing(
    tmp_path: Path, script: Script, capfd: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    (lake / "_tailrace" / "tailrace.log").mkdir(parents=True)
    assert set(sync_once(ConnectorSettings(lake, once=True), ScriptedSource(str(script.path))).values()) == {"live"}
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
