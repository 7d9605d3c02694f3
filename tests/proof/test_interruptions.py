"""Ctrl-C and SIGTERM at random moments of every command: one line, nothing left behind, no stack trace, and a lake that
the next run completes."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from demo.compare import compare
from tests import journey
from tests.interrupting import SIGNALS, interrupted, require_quiet

MOMENTS = 50
ROWS = 200_000
FILL = f"""
create table orders (id int primary key, note text);
insert into orders select n, repeat('x', 200) from generate_series(1, {ROWS}) n;
create table customers (id int primary key);
"""
READING = {
    "help": ("--help",),
    "doctor": ("doctor", "{dsn}"),
    "tables": ("tables", "{lake}"),
    "query in DuckDB": ("query", "{lake}", "select * from orders", "--csv"),
    "query in Spark": ("query", "{lake}", "select * from orders", "--csv", "--engine", "spark"),
    "verify": ("verify", "{dsn}", "{lake}"),
    "maintain": ("maintain", "{lake}"),
    "offsets": ("offsets", "get", "{lake}"),
    "signals": ("signals", "{lake}"),
    "log": ("log", "stats", "{lake}/_tailrace/log"),
    "sync again": ("sync", "--once", "{dsn}", "{lake}"),
    "serve": ("serve", "--home", "{lake}-home", "--listen", "127.0.0.1:0"),
}

pytestmark = [pytest.mark.proof, pytest.mark.timeout(7200)]


@pytest.fixture
def filled(database: str) -> str:
    with psycopg.connect(database) as conn:
        conn.execute(FILL)
    return database


def moments(arguments: list[str], seconds_max: float) -> Iterator[float]:
    """From the first moment until a little after the command's usual end."""
    begun = time.monotonic()
    if "serve" not in arguments:
        # In a JVM of its own, as the command that is interrupted.
        journey.run(*arguments, TAILRACE_JVM_OPTIONS=journey.QUICK_JVM)
    usual = min(seconds_max, 1.1 * (time.monotonic() - begun))
    yield from (random.uniform(0, usual or seconds_max) for _ in range(MOMENTS))


@pytest.mark.parametrize("name", READING)
def test_a_command_ends_well_at_any_moment(name: str, filled: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    assert journey.run("sync", "--once", filled, lake).returncode == 0
    arguments = [each.format(dsn=filled, lake=lake) for each in READING[name]]
    for after_seconds in moments(arguments, 30.0 if name != "serve" else 3.0):
        require_quiet(interrupted(arguments, tmp_path, after_seconds, random.choice(SIGNALS)))
    assert journey.run("sync", "--once", filled, lake).returncode == 0
    assert all(each.equal for each in compare(filled, lake, ["public.orders", "public.customers"]))


def test_a_first_copy_ends_well_at_any_moment_and_exits_with_130_unless_it_was_through(
    filled: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    arguments = ["sync", "--once", filled, str(lake)]
    for after_seconds in moments(arguments, 60.0):
        assert journey.run("drop", filled, "--all", "--yes").returncode == 0
        shutil.rmtree(lake, ignore_errors=True)
        end = interrupted(arguments, tmp_path, after_seconds, random.choice(SIGNALS))
        require_quiet(end)
        is_whole = end.code == 0
        has_published = (lake / "_tailrace" / "cuts.jsonl").exists() and bool(journey.cuts(lake).all())
        assert not is_whole or has_published
        if end.code == 130:
            assert ("published up to" in end.last_line) == has_published, end
    assert journey.run(*arguments).returncode == 0
    assert all(each.equal for each in compare(filled, lake, ["public.orders", "public.customers"]))
