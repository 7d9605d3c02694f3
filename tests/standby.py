"""A primary and a standby that follows it, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from demo.embedded import EmbeddedPostgres
from tests.postgres import wait_until

FEEDBACK = {"hot_standby_feedback": "on"}


@dataclass
class Pair:
    """Both run."""

    primary: EmbeddedPostgres
    standby: EmbeddedPostgres

    def run(self, *statements: str) -> None:
        """On the primary."""
        with psycopg.connect(self.primary.dsn(), autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)

    def catch_up(self) -> None:
        """Until the standby shows all that the primary has."""
        with psycopg.connect(self.primary.dsn(), autocommit=True) as conn:
            (end,) = conn.execute("select pg_current_wal_insert_lsn()").fetchone() or ("",)
        with psycopg.connect(self.standby.dsn(), autocommit=True) as conn:
            query = "select pg_last_wal_replay_lsn() >= %s::pg_lsn"
            wait_until(lambda: conn.execute(query, [end]).fetchone() == (True,), 30)

    def promote(self) -> None:
        """The primary is stopped, and the standby takes its place."""
        self.primary.stop()
        with psycopg.connect(self.standby.dsn(), autocommit=True) as conn:
            conn.execute("select pg_promote()")


@contextmanager
def pair_of(version: int = 18, settings: Mapping[str, str] = FEEDBACK) -> Iterator[Pair]:
    """Of one version; `settings` are the standby's."""
    with TemporaryDirectory(prefix="tailrace-") as folder, ExitStack() as stack:
        primary = stack.enter_context(EmbeddedPostgres(Path(folder) / "primary", version))
        with psycopg.connect(primary.dsn(), autocommit=True) as conn:
            conn.execute("select pg_create_physical_replication_slot('standby', true)")
        copy = Path(folder) / "standby"
        copy.mkdir(mode=0o700)
        standby = EmbeddedPostgres(copy, version, settings={"primary_slot_name": "standby", **settings})
        standby._open_to_system_user()
        primary._run("pg_basebackup", "-d", primary.dsn(), "-D", str(copy), "-R", "-S", "standby", "-c", "fast")
        (copy / "port").unlink(missing_ok=True)
        yield Pair(primary, stack.enter_context(standby))
