"""Encrypted connections to a server that takes no others: for questions, for rows and for the stream.

The certificates are made here, with the command `openssl`. The server is one of this machine's own: the embedded ones
have no TLS.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import HOST, EmbeddedPostgres
from psycopg.conninfo import make_conninfo
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.reading import described, numbers, walk
from tests.postgres import installed_server, wait_until

from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.source.postgres.server.connection import connect
from tailrace.source.postgres.source import PostgresSource

NAME = "db.example"
ACCESS = f"""
hostnossl all postgres {HOST}/32 trust
hostssl shop ann {HOST}/32 scram-sha-256
hostssl shop carol {HOST}/32 cert
"""


@dataclass(frozen=True)
class Encrypted:
    """A server, and the folder with its certificates and those of its users."""

    server: EmbeddedPostgres
    certificates: Path

    def file(self, name: str) -> str:
        return str(self.certificates / name)

    def dsn(self, user: str = "ann", **others: str) -> str:
        """Under a name that no network knows: what counts is that the certificate has it."""
        secret = {"password": "s3cret", "channel_binding": "require"} if user == "ann" else {}
        given = {"host": NAME, "hostaddr": HOST, "port": str(self.server.port), "user": user, "dbname": "shop"}
        checked = {"sslmode": "verify-full", "sslrootcert": self.file("root.crt")}
        return make_conninfo(**given | secret | checked | others)

    def signed_in(self, user: str) -> dict[str, str]:
        return {"sslcert": self.file(f"{user}.crt"), "sslkey": self.file(f"{user}.key")}


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_root(folder: Path, name: str) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(folder, "req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}")


def make_certificate(folder: Path, name: str, common_name: str) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(folder, "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={common_name}")
    (folder / "names").write_text(f"subjectAltName=DNS:{common_name}\n")
    signed = ["-CA", "root.crt", "-CAkey", "root.key", "-CAcreateserial", "-extfile", "names"]
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.crt", *signed)


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Encrypted]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    with TemporaryDirectory(prefix="tailrace-") as folder, TemporaryDirectory(prefix="tailrace-") as made:
        make_root(Path(made), "root")
        make_root(Path(made), "stranger")
        make_certificate(Path(made), "server", NAME)
        for user in ("carol", "ann"):
            make_certificate(Path(made), user, user)
        with installed_server(Path(folder) / "data") as server:
            encrypt(server, Path(made))
            yield Encrypted(server, Path(made))


def encrypt(server: EmbeddedPostgres, certificates: Path) -> None:
    """Has the server take encrypted connections of its users, and no others of theirs."""
    owner = server.data_dir.owner()
    for name in ("server.crt", "server.key", "root.crt"):
        copy = shutil.copy(certificates / name, server.data_dir / name)
        shutil.chown(copy, owner, owner)
        Path(copy).chmod(0o600)
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("alter system set ssl = on")
        conn.execute("alter system set ssl_ca_file = 'root.crt'")
        conn.execute("create role ann login replication password 's3cret'; create role carol login replication")
        conn.execute("create database shop")
        (server.data_dir / "pg_hba.conf").write_text(ACCESS)
        conn.execute("select pg_reload_conf()")

        def is_encrypted() -> bool:
            with psycopg.connect(server.dsn(), autocommit=True) as asking:
                return asking.execute("show ssl").fetchone() == ("on",)

        wait_until(is_encrypted)
    with psycopg.connect(server.dsn("shop"), autocommit=True) as conn:
        conn.execute("create table t (id int primary key); grant select on t to ann, carol")
        conn.execute("create publication made for table t with (publish_via_partition_root = true)")


@pytest.mark.parametrize("user", ["ann", "carol"])
def test_the_stream_and_the_rows_come_over_checked_connections_with_a_password_or_a_certificate(
    encrypted: Encrypted, user: str, tmp_path: Path
) -> None:
    certificate = encrypted.signed_in("carol") if user == "carol" else {}
    source = PostgresSource(encrypted.dsn(user, **certificate), publication="made")
    claim = source.claim(None)
    with psycopg.connect(encrypted.server.dsn("shop"), autocommit=True) as conn:
        conn.execute("truncate t; insert into t values (1)")
        source.prepare(claim, [described(source).table], None)
        with Capture(source, claim, tmp_path / "log") as capture:
            wait_until(lambda: capture.is_streaming)
            conn.execute("insert into t values (2)")
            now = source.now().ordinal
            wait_until(lambda: capture.head.ordinal >= now, 30)
            ours = "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'tailrace'"
            assert {ssl for (ssl,) in conn.execute(ours)} == {True}
        assert numbers(walk(source, described(source), 1, 1)) == [1, 2]
    assert LogReader(tmp_path / "log").head.seq == 1
    source.drop(claim)


@pytest.mark.parametrize("replication", [False, True])
@pytest.mark.parametrize(
    ("given", "told", "hint"),
    [
        (
            {"sslrootcert": "stranger.crt"},
            "the server's certificate is not trusted: ",
            "sslroot",
        ),
        ({"host": "other.example"}, "the server's certificate is for another host: ", "sslmode=verify-ca"),
        ({"sslrootcert": "none.crt"}, "the connection string asks for a certificate that cannot be used: ", "sslroot"),
        ({"sslmode": "disable", "sslrootcert": ""}, "the server's pg_hba.conf does not let us in", "pg_hba.conf"),
        ({"user": "carol"}, "the server wants a certificate of carol", "sslcert"),
        (
            {"user": "carol", "sslcert": "ann.crt", "sslkey": "ann.key"},
            "the server wants a certificate of carol",
            "ssl",
        ),
        ({"sslcert": "ann.crt", "sslkey": "none.key"}, "the connection string asks for a certificate that", "sslkey"),
    ],
)
def test_a_connection_that_is_not_what_it_should_be_is_refused_in_one_line(
    encrypted: Encrypted, given: dict[str, str], told: str, hint: str, replication: bool
) -> None:
    files = {name: encrypted.file(value) for name, value in given.items() if value.endswith((".crt", ".key"))}
    dsn = encrypted.dsn(**given | files)
    with pytest.raises(DefiniteError) as caught:
        connect(dsn, replication=replication)
    assert told in caught.value.message
    assert "\n" not in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"


def test_a_server_without_tls_says_how_to_turn_it_on(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.dsn()) as conn:
        assert conn.execute("show ssl").fetchone() == ("off",)
    with pytest.raises(DefiniteError, match="does not offer TLS") as caught:
        connect(f"{postgres.dsn()}?sslmode=require")
    assert "alter system set ssl = on" in (caught.value.hint or "")
