"""Writers that change a database at random while a test does something else."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg

REFUSALS = (psycopg.errors.IntegrityError, psycopg.errors.DeadlockDetected, psycopg.errors.DuplicateColumn)
TOGETHER = 4
RARELY = 0.002
PAUSE_SECONDS = 0.002


@dataclass(frozen=True)
class Load:
    """What writers do. A statement is given two keys, `key` and `other`, and a text that no other has, `text`."""

    statements: tuple[str, ...]
    keys_max: int
    rare: tuple[str, ...] = ()
    """Statements that come once in a while."""
    together: float = 0.0
    """How often several statements are one transaction."""


@contextmanager
def writers(dsn: str, load: Load, count: int = 3) -> Iterator[None]:
    """So many write inside the `with`. What the server refuses because of the others is left out."""
    stopping = threading.Event()
    threads = [threading.Thread(target=_write, args=(dsn, load, seed, stopping)) for seed in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def _write(dsn: str, load: Load, seed: int, stopping: threading.Event) -> None:
    chance = random.Random(seed)
    with psycopg.connect(dsn, autocommit=True) as conn:
        while not stopping.is_set():
            key, other = chance.randint(1, load.keys_max), chance.randint(1, load.keys_max)
            given = {"key": key, "other": other, "text": f"{seed} {chance.random()}"}
            is_rare = bool(load.rare) and chance.random() < RARELY
            count = TOGETHER if chance.random() < load.together and not is_rare else 1
            with suppress(*REFUSALS), conn.transaction():
                for statement in chance.choices(load.rare if is_rare else load.statements, k=count):
                    conn.execute(statement, given)
            stopping.wait(PAUSE_SECONDS)
