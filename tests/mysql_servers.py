"""Real servers of MySQL and MariaDB for tests, without installing anything and without the rights of root.

`python -m tests.mysql_servers` fetches them, as `make test` does: from the archive that this machine's apt uses, with
an apt of our own that has no installed packages, so it brings everything down to the C library. Signatures are checked
as apt checks them. What comes is unpacked into the user's cache folder, and runs with the loader that came with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
from tests.postgres import wait_until

from tailrace import ending

HOST = "127.0.0.1"
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SETTINGS = {
    "log-bin": "binlog",
    "server-id": "1",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "bind-address": HOST,
    "innodb-buffer-pool-size": "32M",
    "innodb-flush-log-at-trx-commit": "0",
    "sync-binlog": "0",
    "character-set-server": "utf8mb4",
}


@dataclass(frozen=True)
class Make:
    """One make of server, in the version that a suite of the archive has."""

    name: str
    suite: str
    packages: Sequence[str]
    program: str
    settings: Mapping[str, str]


MARIADB = Make("mariadb", "bookworm", ["mariadb-server-core"], "mariadbd", {})
MYSQL = Make(
    "mysql",
    "sid",
    ["mysql-server-core", "mysql-server"],
    "mysqld",
    {
        "gtid-mode": "ON",
        "enforce-gtid-consistency": "ON",
        "mysqlx": "OFF",
        "innodb-redo-log-capacity": "32M",
        "performance-schema": "OFF",
    },
)
MAKES = {make.name: make for make in (MARIADB, MYSQL)}


class MySqlServer:
    """One server on a data folder of its own. `settings` come over ours."""

    def __init__(self, make: Make, data: Path, settings: Mapping[str, str] | None = None) -> None:
        self.make = make
        self.port = 0
        self._programs = fetched(make)
        self._data = data
        self._settings = SETTINGS | make.settings | dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> MySqlServer:
        """Returns when the server answers. Makes its data where there is none; the port stays the same."""
        if not self._data.exists():
            shutil.copytree(self._programs / "data", self._data)
        self.port = self.port or _free_port()
        given = [f"--{name}={value}" for name, value in self._settings.items()]
        command = [*_command(self.make, self._programs, self._data), *given]
        command += [f"--port={self.port}", f"--socket={self._data}/socket"]
        with (self._data / "server.log").open("ab") as log:
            self._process = ending.started(lambda: _start(command, log))
        wait_until(self._answers, 60)
        return self

    def stop(self) -> None:
        """In order: the binlog is closed."""
        if self._process is not None:
            with self.connect() as conn:
                conn.cursor().execute("shutdown")
            self._end()

    def kill(self) -> None:
        """As in a crash."""
        self._end()

    def connect(self, database: str | None = None, **options: Any) -> pymysql.Connection[Any]:
        """A connection as root, which commits each statement."""
        given = {"user": "root", "autocommit": True, "charset": "utf8mb4"} | options
        return pymysql.connect(host=HOST, port=self.port, database=database, **given)

    def execute(self, *statements: str, database: str | None = None) -> Any:
        """Runs the statements, in one session; the rows of the last one."""
        with self.connect(database) as conn, conn.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def _answers(self) -> bool:
        log = (self._data / "server.log").read_text(errors="replace")
        if "Aborting" in log:
            raise AssertionError(f"the server does not start: {log[-2000:]}")
        try:
            self.connect().close()
        except pymysql.err.OperationalError:
            return False
        return True


@contextmanager
def mysql_server(make: Make, **settings: str) -> Iterator[MySqlServer]:
    """Runs while the `with` does. An underscore in the name of a setting is a dash."""
    with tempfile.TemporaryDirectory(prefix="tailrace-mysql-") as folder:
        given = {name.replace("_", "-"): value for name, value in settings.items()}
        server = MySqlServer(make, Path(folder, "data"), given).start()
        try:
            yield server
        finally:
            server.kill()


def _command(make: Make, programs: Path, data: Path) -> list[str]:
    usr = programs / "usr"
    libc = next(programs.rglob("libc.so.6"))
    loader = next(libc.parent.glob("ld-linux*.so.*"))
    return [
        *(str(loader), "--library-path", f"{libc.parent}:{usr}/lib/{libc.parent.name}", f"{usr}/sbin/{make.program}"),
        *("--no-defaults", f"--basedir={usr}", f"--datadir={data}", "--secure-file-priv="),
        *(f"--lc-messages-dir={usr}/share/mysql", f"--character-sets-dir={usr}/share/mysql/charsets"),
        f"--plugin-dir={usr}/lib/mysql/plugin",
        *(["--user=root"] if os.geteuid() == 0 else []),
    ]


def _start(command: list[str], log: Any) -> subprocess.Popen[bytes]:
    """It ends when our end of its pipe is closed, however that comes."""
    script = '"$@" </dev/null & read _; kill -9 $!; wait'
    return subprocess.Popen(
        ["sh", "-c", script, "mysql", *command],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: int = found.getsockname()[1]
        return port


def fetched(make: Make) -> Path:
    """The folder with the make's programs, with a network the first time."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
    folder = cache / f"{make.name}-server"
    if not folder.exists():
        cache.mkdir(0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            programs = _unpack(make, Path(scratch))
            _initialise(make, programs)
            programs.replace(folder)
    return folder


def _initialise(make: Make, programs: Path) -> None:
    """The data of a new server, which each one begins with a copy of."""
    data = programs / "data"
    data.mkdir()
    sql = ""
    if make is MARIADB:
        scripts = ("mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data")
        texts = [(programs / f"usr/share/mysql/{name}.sql").read_text() for name in scripts]
        sql = "\n".join(["create database mysql;", "use mysql;", *texts])
    command = [*_command(make, programs, data), "--bootstrap" if sql else "--initialize-insecure"]
    _run([*command, "--innodb-buffer-pool-size=32M", "--disable-log-bin"], input=sql)
    # Each server has an identity of its own.
    (data / "auto.cnf").unlink(missing_ok=True)


def _unpack(make: Make, scratch: Path) -> Path:
    debs = _download(make, scratch / "apt")
    programs = scratch / "programs"
    programs.mkdir()
    for deb in debs:
        if deb.name.startswith("lib") or any(deb.name.startswith(f"{name}_") for name in make.packages):
            _run(["dpkg-deb", "-x", str(deb), str(programs)])
    for name in ("share/doc", "share/man", "share/locale", "share/gdb"):
        shutil.rmtree(programs / "usr" / name, ignore_errors=True)
    return programs


def _download(make: Make, root: Path) -> list[Path]:
    """The packages and all that they need, checked by an apt that has nothing installed."""
    for name in ("state/lists/partial", "cache/archives/partial", "parts"):
        (root / name).mkdir(parents=True)
    (root / "status").touch()
    mirrors = _run(["apt-get", "indextargets", "Created-By: Packages", "--format", "$(REPO_URI)"]).split()
    mirror = next((each for each in mirrors if each.rstrip("/").endswith("/debian")), None)
    if mirror is None or not KEYS.exists():
        raise SystemExit("mysql: the tests of MySQL need a Debian whose apt has an archive")
    (root / "sources").write_text(f"deb [signed-by={KEYS}] {mirror} {make.suite} main\n")
    settings = root / "settings"
    settings.write_text(
        f'Dir::State "{root}/state";\nDir::State::status "{root}/status";\nDir::Cache "{root}/cache";\n'
        f'Dir::Etc::sourcelist "{root}/sources";\nDir::Etc::sourceparts "{root}/parts";\n'
        'APT::Install-Recommends "false";\nAcquire::Languages "none";\nAPT::Sandbox::User "";\n'
    )
    ours = os.environ | {"APT_CONFIG": str(settings)}
    _run(["apt-get", "update", "-q"], env=ours)
    _run(["apt-get", "install", "-qy", "--download-only", "-o", "Debug::NoLocking=1", make.packages[0]], env=ours)
    archives = root / "cache" / "archives"
    for name in make.packages[1:]:
        _run(["apt-get", "download", "-q", name], env=ours, cwd=archives)
    return sorted(archives.glob("*.deb"))


def _run(command: list[str], **how: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    if done.returncode:
        raise SystemExit(f"mysql: {' '.join(command)} failed: {done.stderr.strip()[-1000:]}")
    return done.stdout


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for each in MAKES.values():
        print(fetched(each))
