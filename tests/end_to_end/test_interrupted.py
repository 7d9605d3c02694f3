"""Ctrl-C and SIGTERM at some moments of some commands: one line, the right exit code, nothing left behind. The long
sweep over every command is in `tests/proof/test_interruptions.py`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from signal import SIGINT, SIGTERM

import psycopg
import pytest
from demo.compare import compare
from tests import journey
from tests.interrupting import interrupted, require_quiet

ROWS = 200_000
FILL = f"""
create table orders (id int primary key, note text);
insert into orders select n, repeat('x', 200) from generate_series(1, {ROWS}) n;
create table customers (id int primary key);
"""


@pytest.fixture
def filled(database: str) -> str:
    with psycopg.connect(database) as conn:
        conn.execute(FILL)
    return database


def read_until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    raise AssertionError(process.communicate())


def test_an_interrupted_first_copy_exits_with_130_and_the_same_command_completes_it(
    filled: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    process = journey.start("sync", "--once", filled, str(lake))
    read_until(process, "copying existing rows")
    code, _, errors = journey.interrupt(process)
    assert code == 130
    assert errors.splitlines()[-1].startswith("interrupted: nothing is published yet; the same command continues")
    assert errors.endswith(f"in a slot; to give that up: tailrace drop DSN {lake}\n")
    assert len(errors.splitlines()) == 1
    assert journey.cuts(lake).all() == []
    assert journey.run("sync", "--once", filled, str(lake)).returncode == 0
    assert all(each.equal for each in compare(filled, lake, ["public.orders", "public.customers"]))


def test_a_sync_that_waits_for_others_is_interrupted_before_it_has_made_anything(filled: str, tmp_path: Path) -> None:
    with psycopg.connect(filled) as writer:
        writer.execute("insert into customers values (1)")
        process = journey.start("sync", "--once", filled, str(tmp_path / "lake"))
        read_until(process, "creating slot")
        code, _, errors = journey.interrupt(process)
    assert (code, errors) == (130, "interrupted: nothing was published, and nothing was made at the source\n")


def test_a_sync_that_follows_ends_with_what_is_published_and_what_the_slot_costs(filled: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    process = journey.start("sync", filled, str(lake), "--tables", "public.customers")
    journey.wait_for_cuts(process, lake, 1)
    code, _, errors = journey.interrupt(process)
    assert code == 0
    (line,) = errors.splitlines()
    assert line.startswith("stopped: published up to ")
    assert "which is everything in the log" in line
    assert line.endswith(f"the source keeps WAL for this lake in a slot; to give that up: tailrace drop DSN {lake}")


@pytest.mark.timeout(600)
def test_commands_that_are_interrupted_leave_no_process_no_folder_and_no_stack_trace(
    filled: str, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    assert journey.run("sync", "--once", filled, lake).returncode == 0
    spark = ["query", lake, "select count(*) from orders", "--engine", "spark"]
    moments = [
        (["--help"], 0.0, SIGINT),
        (["doctor", filled], 0.1, SIGTERM),
        (["query", lake, "select * from orders", "--csv"], 0.7, SIGINT),
        (["tables", lake], 0.2, SIGINT),
        (["verify", filled, lake], 1.2, SIGTERM),
        # The JVM is being started, has not told yet where it listens, or works.
        (spark, 0.6, SIGINT),
        (spark, 1.5, SIGTERM),
        (spark, 3.0, SIGINT),
    ]
    for arguments, after_seconds, number in moments:
        require_quiet(interrupted(arguments, tmp_path, after_seconds, number))


def closed_at_once(*arguments: str) -> tuple[int, str]:
    with journey.start(*arguments) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        return process.wait(journey.RUN_SECONDS), process.stderr.read()


def test_a_reader_that_has_had_enough_ends_a_command_in_silence(filled: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    assert closed_at_once("run", "--keys") == (0, "")
    assert closed_at_once("doctor", filled) == (0, "")
    code, errors = closed_at_once("sync", filled, lake)
    assert (code, len(errors.splitlines())) == (130, 1), "it ends, in order"
    assert journey.run("sync", "--once", filled, lake).returncode == 0
    assert closed_at_once("tables", lake) == (0, "")
    code, errors = closed_at_once("query", lake, "select * from orders")
    assert (code, errors) == (0, "")
