"""Windows go by the server's order of keys, whatever it is: under ICU's collations, and where texts that differ are one
key.

The embedded server has no ICU. These tests run where another one is installed: in the folder that
`TAILRACE_POSTGRES_BIN` names, or where Debian puts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from tests.doors.disturbed import DisturbedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import installed_server
from tests.running import running, sync_once

from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode

SETUP = """
create collation by_number (provider = icu, locale = 'en-u-kn-true');
create collation any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create collation any_accent (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
create table words (id text collate "und-x-icu" primary key, v text);
create table numbered (id text collate by_number primary key, v text);
create table names (id text collate any_case primary key, v text, large text);
alter table names alter large set storage external;
create table pairs (a varchar(20) collate any_accent, b int, v text, primary key (a, b));
insert into words select w || n, 'first' from unnest(array['a', 'B', 'b', 'é', 'e', 'Z', 'z', 'ß', '-', ' ', 'Æ']) w,
  generate_series(1, 4) n;
insert into numbered select 'item ' || n, 'first' from generate_series(1, 60) n;
insert into names select case when n % 2 = 0 then 'Name' else 'name' end || n, 'first', repeat(md5(n::text), 100)
  from generate_series(1, 60) n;
insert into pairs select a, 10 * n + g, 'first'
  from unnest(array['resume', 'résumé', 'Resume', 'role', 'rôle']) with ordinality as given (a, n),
  generate_series(1, 6) g;
"""
TABLES = ("public.words", "public.numbered", "public.names", "public.pairs")
CHANGES = """
update names set id = upper(id) where v = 'first' and length(id) = 6;
update names set id = lower(id), v = 'second' where id in ('NAME20', 'name21', 'Name58');
delete from names where id = 'nAmE30';
insert into names values ('nAmE30', 'again', 'short');
update names set id = 'Zz' || id where id in ('name2', 'name59');
update numbered set id = 'item 0' || substr(id, 6) where id in ('item 7', 'item 55');
update words set id = upper(id), v = 'second' where id ~ '^[eé]3$';
update pairs set a = 'RÔLE', v = 'second' where a = 'role' and b in (41, 53);
"""


@pytest.fixture(scope="module")
def with_icu() -> Iterator[str]:
    """A database of a server that has ICU."""
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        installed_server(Path(folder) / "data") as server,
        psycopg.connect(server.dsn()) as conn,
    ):
        if conn.execute("select count(*) from pg_collation where collprovider = 'i'").fetchone() == (0,):
            pytest.skip(f"the Postgres in {server.bin_dir} has no ICU")
        yield server.create_database("collated")


def test_keys_under_other_collations_are_copied_by_windows_also_while_they_change(
    with_icu: str, tmp_path: Path
) -> None:
    execute(with_icu, SETUP)
    settings = ConnectorSettings(
        tmp_path / "lake", publish_every_seconds=0.1, look_at_tables_seconds=0.2, window_rows=4, readers_max=1
    )
    once = replace(settings, snapshot_mode=SnapshotMode.INCREMENTAL, once=True)
    assert set(sync_once(once, DisturbedPostgres(with_icu)).values()) == {TableState.LIVE}
    assert_equal(with_icu, settings.lake, *TABLES)
    source = DisturbedPostgres(with_icu)
    with running(settings, source) as run:

        def disturb(table: TableId, what: str, number: int) -> None:
            if (table.name, number) == ("names", 7):
                execute(with_icu, CHANGES)
            if (table.name, number) == ("names", 9):
                execute(with_icu, "update names set id = initcap(id), v = v || '!' where id < 'name4'")

        source.disturbance.begin(disturb)
        for table in TABLES:
            run.connector.resync(TableId.parse(table))
        for table in TABLES:
            run.wait_for_state(table, TableState.LIVE, copy=2)
        run.catch_up()
        assert source.disturbance.done[TableId("public", "names"), "read"] > 9
        assert_equal(with_icu, run.lake, *TABLES)
