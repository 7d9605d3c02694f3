"""The server's own folder, and the names that connectors may have.

HOME/server.db     connectors and what is wanted of them, unless another database has them
HOME/lakes/NAME/   the lake of a connector that names no other folder
HOME/spark.log     what the JVM that all connectors share has to say
HOME/scratch/      what the running server needs for a while; the next one removes what was left there
HOME/lock          held by the running server
"""

from __future__ import annotations

import hashlib
import shutil
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from tailrace.errors import DefiniteError
from tailrace.server.errors import RequestError
from tailrace.server.supervisor.store import NAME_CHARACTERS_MAX
from tailrace.storage.folder_lock import FolderLock, HeldError

FOLDER_CHARACTERS_MAX = 120
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of characters that are not seen, or change how others are: text that runs backwards, for one."""


class ServerHome:
    """One server at a time works in a home."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.lakes = self.path / "lakes"
        self.spark_log = self.path / "spark.log"
        self.messages = self.path / "server.log"
        self.scratch = self.path / "scratch"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the folder where there is none. A definite error if another server works here."""
        try:
            self.path.mkdir(0o700, parents=True, exist_ok=True)
            lock = FolderLock(self.path / "lock")
        except HeldError:
            message = f"another tailrace server works in {self.path}"
            raise DefiniteError(message, "stop it, or choose another folder: --home") from None
        except OSError as error:
            message = f"cannot use {self.path}: {error.strerror}"
            raise DefiniteError(message, "choose a folder you may write to: --home") from None
        with closing(lock):
            # A server that was killed has left something there.
            shutil.rmtree(self.scratch, ignore_errors=True)
            self.scratch.mkdir(0o700, exist_ok=True)
            yield

    def lake_of(self, name: str) -> Path:
        """The folder for a connector's lake: one for each name, always directly in `lakes`."""
        older = self.lakes / _folder_name(name, "%")
        return older if older.is_dir() else self.lakes / folder_name(name)


def folder_name(name: str) -> str:
    """A connector's name as the name of one folder, with `~2E` for a dot: DuckDB reads no table below a `%`."""
    return _folder_name(name, "~")


def _folder_name(name: str, mark: str) -> str:
    """`%` marked a letter that stands for another in lakes that were made before."""
    plain = quote(name, safe="").replace(".", "%2E").replace("~", "%7E").replace("%", mark)
    if len(plain) <= FOLDER_CHARACTERS_MAX:
        return plain
    # Two `~` are in no other.
    return f"{plain[:80]}{'~' if mark == '%' else '~~'}{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def require_name(name: str) -> str:
    """The name, if a connector may have it: anything but what would be another path in a URL."""
    if not name or name != name.strip():
        raise RequestError("a connector's name may not be empty or begin or end with a space", "name it")
    if any(unicodedata.category(each) in _UNSEEN for each in name):
        raise RequestError("a connector's name may not have control or format characters", "leave them out")
    if "/" in name or "\\" in name or name in (".", ".."):
        raise RequestError("a connector's name may not be a path", "leave out / and \\")
    if len(name) > NAME_CHARACTERS_MAX:
        message = f"a connector's name may have {NAME_CHARACTERS_MAX} characters"
        raise RequestError(f"{message}, not {len(name)}", "shorten it")
    return name
