"""Every way to name a database and a password leads there, and no message ever has the password."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import psycopg
import pytest
from demo.embedded import HOST, EmbeddedPostgres, installed
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.source.kinds import source_of
from tailrace.source.postgres.server.address import describe
from tailrace.source.postgres.server.connection import connect
from tailrace.source.postgres.server.refusals import ServerFullError, explain
from tailrace.source.postgres.source import PostgresSource

PASSWORD = "p@s:s/w%o'r\"d\\ ?#&=ü€😀://@"


@dataclass(frozen=True)
class Guarded:
    """A server on a port and on a socket, with a database `shop` and a user `ann` who needs a password."""

    server: EmbeddedPostgres
    sockets: Path

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def uri(self) -> str:
        return f"postgresql://ann:{quote(PASSWORD, safe='')}@{HOST}:{self.port}/shop"

    def pairs(self, **others: str) -> str:
        given = {"host": HOST, "port": str(self.port), "user": "ann", "dbname": "shop", "password": PASSWORD}
        return make_conninfo(**given | others)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with TemporaryDirectory(prefix="tailrace-") as folder, TemporaryDirectory(prefix="tailrace-") as sockets:
        Path(sockets).chmod(0o777)
        settings = {"unix_socket_directories": sockets, "max_connections": "12"}
        with EmbeddedPostgres(Path(folder) / "data", settings=settings) as server:
            with psycopg.connect(server.dsn(), autocommit=True) as conn:
                conn.execute("create role with_password nologin")
                conn.execute("create role ann login replication in role with_password")
                conn.execute(sql.SQL("alter role ann password {}").format(PASSWORD))
                conn.execute("create database shop owner ann")
            yield Guarded(server, Path(sockets))


@pytest.fixture
def conn(guarded: Guarded) -> Iterator[psycopg.Connection]:
    with psycopg.connect(guarded.server.dsn(), autocommit=True) as connection:
        yield connection


def assert_leads_to_shop(dsn: str, shown: str) -> None:
    with connect(dsn) as conn:
        assert (conn.info.user, conn.info.dbname) == ("ann", "shop")
    assert source_of(dsn).identify()["database"] == "shop"
    assert describe(dsn) == shown


def test_a_password_of_any_characters_works_in_both_forms(guarded: Guarded) -> None:
    shown = f"ann@{HOST}:{guarded.port}/shop"
    assert_leads_to_shop(guarded.uri, shown)
    assert_leads_to_shop(guarded.pairs(), shown)
    assert_leads_to_shop(guarded.pairs(options="-c work_mem=5MB -c application_name=mine"), shown)
    with connect(guarded.pairs(options="-c work_mem=5MB -c datestyle=German")) as conn:
        found = conn.execute("select current_setting('work_mem'), current_setting('datestyle')").fetchone()
        assert found == ("5MB", "ISO, DMY")


def test_a_socket_and_several_hosts(guarded: Guarded) -> None:
    on_socket = guarded.pairs(host=str(guarded.sockets))
    assert_leads_to_shop(on_socket, f"ann@{guarded.sockets}:{guarded.port}/shop")
    uri = f"postgresql://ann:{quote(PASSWORD, safe='')}@{quote(str(guarded.sockets), safe='')}:{guarded.port}/shop"
    assert_leads_to_shop(uri, f"ann@{guarded.sockets}:{guarded.port}/shop")
    several = guarded.pairs(host=f"{HOST},{HOST}", port=f"1,{guarded.port}")
    assert_leads_to_shop(several, f"ann@{HOST}:1,{HOST}:{guarded.port}/shop")
    several = guarded.pairs(host=f"{guarded.sockets},{HOST}", port=str(guarded.port))
    assert_leads_to_shop(several, f"ann@{guarded.sockets}:{guarded.port},{HOST}:{guarded.port}/shop")


def test_what_the_environment_a_service_file_and_a_password_file_add(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "passwords"
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    passwords.write_text(f"{HOST}:{guarded.port}:shop:ann:{escaped}\n", encoding="utf-8")
    passwords.chmod(0o600)
    services = tmp_path / "services"
    services.write_text(f"[the shop]\nhost={HOST}\nport={guarded.port}\ndbname=shop\nuser=ann\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    assert_leads_to_shop("service='the shop'", "service the shop")
    assert_leads_to_shop("service='the shop' user=ann", "service the shop, user ann")
    assert_leads_to_shop(f"postgresql://ann@{HOST}:{guarded.port}/shop", f"ann@{HOST}:{guarded.port}/shop")
    monkeypatch.delenv("PGPASSFILE")
    for name, value in {"HOST": HOST, "PORT": str(guarded.port), "USER": "ann", "PASSWORD": PASSWORD}.items():
        monkeypatch.setenv(f"PG{name}", value)
    monkeypatch.setenv("PGDATABASE", "shop")
    assert_leads_to_shop("postgresql://", f"ann@{HOST}:{guarded.port}/shop")
    assert_leads_to_shop("", f"ann@{HOST}:{guarded.port}/shop")
    assert describe("host=::1,other port=5433 user=bob") == "bob@[::1]:5433,other:5433/shop"
    monkeypatch.delenv("PGHOST")
    monkeypatch.delenv("PGDATABASE")
    assert describe("port=7 user=bob") == "bob@local socket:7/bob"


@pytest.mark.parametrize(
    "mistaken",
    [
        "postgresql://ann:sec@ret@localhost/shop",
        "postgresql://ann:sec/ret@localhost/shop",
        "postgresql://ann:12/secret@localhost/shop",
        "postgresql://ann:s?sec@ret@localhost/shop",
        "postgresql://ann:12/s?sec@ret@localhost/shop",
        "postgresql://ann:sec%ret@localhost/shop",
        "postgresql://ann:sec ret@localhost/shop",
        "postgresql://localhost:secret/shop",
        "host=localhost password='secret",
        "host=localhost password=sec ret",
        "host=localhost password=mysql://secret port=secret",
        "secret",
    ],
)
def test_a_mistaken_connection_string_is_explained_without_repeating_it(mistaken: str) -> None:
    with pytest.raises(DefiniteError) as caught:
        source_of(mistaken).identify()
    assert caught.value.hint
    assert not {"sec", "ret"} & {*str(caught.value).split(), *str(caught.value.hint).split()}
    assert "secret" not in f"{caught.value} {caught.value.hint}"
    assert "ret@" not in f"{caught.value} {caught.value.hint}"


def refused(dsn: str, **options: bool) -> TailraceError:
    with pytest.raises(TailraceError) as caught:
        connect(dsn, **options)
    assert "pass" not in caught.value.message.replace("password of", "")
    return caught.value


def test_why_a_connection_is_refused_comes_with_what_cures_it(guarded: Guarded, conn: psycopg.Connection) -> None:
    where = f"bob@{HOST}:{guarded.port}"
    dsn = guarded.server.dsn("closed", "bob")
    missing = refused(dsn)
    assert (missing.message, missing.hint) == (f"{where}/closed: no such user", 'create role "bob" login replication')
    conn.execute("create role bob")
    assert refused(dsn).hint == 'alter role "bob" with login;'
    conn.execute('alter role "bob" with login;')
    assert refused(dsn).message == f"{where}/closed: no such database"
    conn.execute("create database closed")
    conn.execute("revoke connect on database closed from public")
    denied = refused(dsn)
    assert denied.message == f"{where}/closed: user bob may not connect to this database"
    conn.execute("alter database closed allow_connections false")
    closed = refused(dsn)
    assert closed.message == f"{where}/closed: this database takes no connections"
    for cure in (closed.hint, denied.hint):
        conn.execute(cure or "")
    connect(dsn).close()
    unprivileged = refused(dsn, replication=True)
    assert unprivileged.message == f"{where}/closed: user bob lacks the REPLICATION privilege"
    conn.execute(unprivileged.hint or "")
    connect(dsn, replication=True).close()
    assert "refused the password of ann" in refused(guarded.server.dsn("shop", "ann")).message
    assert "refused the password of ann" in refused(guarded.pairs(password="passé")).message
    conn.execute("drop database closed with (force)")
    conn.execute("drop role bob")


def test_a_server_without_a_connection_left_is_worth_waiting_for(guarded: Guarded, conn: psycopg.Connection) -> None:
    conn.execute("create role carl login connection limit 1")
    dsn = guarded.server.dsn(user="carl")
    with connect(dsn):
        full = refused(dsn)
        assert isinstance(full, ServerFullError)
        assert full.message == f"carl@{HOST}:{guarded.port}/postgres: the server has no connection left for carl"
        assert 'alter role "carl" connection limit …;' in (full.hint or "")
    conn.execute("alter role carl connection limit -1")
    taken: list[psycopg.Connection] = []
    with pytest.raises(ServerFullError):
        taken.extend(connect(dsn) for _ in range(20))
    for each in taken:
        each.close()
    conn.execute("drop role carl")


def test_a_server_that_is_not_there_is_tried_again_and_each_host_that_was_tried_is_told() -> None:
    several = refused("host=127.0.0.1,/nowhere port=1 user=bob dbname=shop")
    assert isinstance(several, TransientError)
    assert several.message.startswith("bob@127.0.0.1:1,/nowhere:1/shop: cannot connect: ")
    assert "Connection refused" in several.message
    assert "No such file" in several.message
    assert "port" in (several.hint or "")


def test_a_server_that_speaks_another_language_is_understood_by_what_is_not_translated() -> None:
    """As its translations have it; there is no such server at hand."""
    dsn = "postgresql://ann@localhost/CONNECT"
    for text, told in {
        "keine Berechtigung für Datenbank »x« DETAIL:  Benutzer hat das CONNECT-Privileg nicht.": "may not connect",
        'Anzahl angeforderter Standby-Verbindungen überschreitet "max_wal_senders" (aktuell 0)': "no wal sender left",
        "kein pg_hba.conf-Eintrag für Host »127.0.0.1«": "pg_hba.conf does not let us in",
        "keine Berechtigung, um WAL-Sender zu starten DETAIL:  Nur Rollen mit dem REPLICATION-Attribut": "lacks",
    }.items():
        assert told in explain(psycopg.OperationalError(f"FATAL:  {text}"), dsn).message
    unknown = explain(psycopg.OperationalError("FATAL:  Datenbank »CONNECT« existiert nicht"), dsn)
    assert isinstance(unknown, TransientError)
    assert "Datenbank »CONNECT« existiert nicht" in unknown.message
    assert "database" in (unknown.hint or "")


def test_settings_of_the_role_do_not_change_how_values_are_written_nor_end_our_connections(
    guarded: Guarded, conn: psycopg.Connection
) -> None:
    conn.execute("create role dora login replication")
    limits = ["lock_timeout", "idle_session_timeout", "statement_timeout"]
    limits += ["transaction_timeout"] if conn.info.server_version >= 170000 else []
    for setting in ("lc_monetary = 'C.utf8'", *(f"{name} = '1s'" for name in limits)):
        conn.execute(f"alter role dora set {setting}")
    for replication in (False, True):
        with connect(guarded.server.dsn(user="dora"), replication=replication) as theirs:
            for name, value in {"lc_monetary": "C", **dict.fromkeys(limits, "0")}.items():
                assert theirs.execute(f"show {name}").fetchone() == (value,), name
    PostgresSource(guarded.server.dsn(user="dora")).identify()
    conn.execute("drop role dora")


@pytest.fixture(scope="module")
def german() -> Iterator[EmbeddedPostgres]:
    """A server that speaks German. The embedded one has no translations; Debian's has."""
    if installed(15) is None or not Path("/usr/share/locale/de/LC_MESSAGES/postgres-15.mo").exists():
        pytest.skip("no Postgres with translations is installed")
    with TemporaryDirectory(prefix="tailrace-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANGUAGE", "de")
        with EmbeddedPostgres(Path(folder) / "data", 15, settings={"lc_messages": "C.UTF-8"}) as server:
            yield server


def test_a_server_that_speaks_german_is_understood(german: EmbeddedPostgres) -> None:
    with psycopg.connect(german.dsn(), autocommit=True) as conn:
        with pytest.raises(psycopg.Error, match="existiert nicht"):
            conn.execute("select * from nowhere")
        conn.execute("create role with_password nologin; create role ann login in role with_password password 'right'")
        conn.execute("create role shut nologin; create role bob login; create role carl login connection limit 0")
        conn.execute("create database closed")
        conn.execute("revoke connect on database closed from public")
        dsn = german.dsn(user="ann")
        told = {
            dsn.replace("ann", "ann:wrong"): "refused the password of ann",
            german.dsn("nowhere"): "no such database",
            german.dsn(user="nobody"): "no such user, or user nobody may not log in",
            german.dsn(user="shut"): "no such user, or user shut may not log in",
            german.dsn("closed", "bob"): "may not connect to this database",
        }
        for refusing, words in told.items():
            error = refused(refusing)
            assert isinstance(error, DefiniteError)
            assert words in error.message
        assert isinstance(refused(german.dsn(user="carl")), ServerFullError)
        assert "REPLICATION" in refused(dsn.replace("ann", "ann:right"), replication=True).message
        conn.execute("alter database closed allow_connections false")
        assert "takes no connections" in refused(german.dsn("closed")).message
