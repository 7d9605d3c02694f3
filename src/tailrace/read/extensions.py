"""DuckDB's extensions, whose signatures are checked once.

DuckDB computes the signature of an extension whenever it is loaded, a third of a second for Delta's. We have it do so
once for a file: `~/.cache/tailrace/signed/` has an empty file for each content that was found signed, and one for each
file with that content, by its number, size and times. A file that was touched since is hashed again, and one with
another content is checked again. Where that folder cannot be written, every process checks for itself.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import duckdb

from tailrace.errors import DefiniteError

_OTHERS_MAY_WRITE = 0o022
_signed: set[str] = set()
"""Files that this process knows to be signed, by `_identity`."""


def require_signed(extension: Path) -> None:
    """A definite error for a file that DuckDB's makers have not signed."""
    identity = _identity(extension)
    if identity in _signed:
        return
    if not _is_known(identity):
        with extension.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        content = f"{duckdb.__version__}-{content}"
        if not _is_known(content):
            _check(extension)
            _remember(content)
        # Unless it was replaced meanwhile.
        if _identity(extension) == identity:
            _remember(identity)
    _signed.add(identity)


def _check(extension: Path) -> None:
    with duckdb.connect(config={"allow_unsigned_extensions": False}) as connection:
        try:
            connection.load_extension(str(extension))
        except duckdb.Error as error:
            reason = (str(error).strip().splitlines() or ["not an extension"])[0]
            raise DefiniteError(
                f"{extension} is not used: {reason}", "install the package that it is from again"
            ) from None


def _identity(extension: Path) -> str:
    found = extension.stat()
    told = (str(extension.resolve()), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return f"{duckdb.__version__}-file-{hashlib.sha256(repr(told).encode()).hexdigest()}"


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace" / "signed"


def _is_known(name: str) -> bool:
    """A folder that others could write to is not believed."""
    try:
        folder = _folder()
        found = folder.stat()
        return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE and (folder / name).exists()
    except (OSError, RuntimeError):
        return False


def _remember(name: str) -> None:
    """Not in a home that is not there."""
    with suppress(OSError, RuntimeError):
        folder = _folder()
        if folder.parents[2].is_dir():
            folder.mkdir(0o700, parents=True, exist_ok=True)
            (folder / name).touch(0o600)
