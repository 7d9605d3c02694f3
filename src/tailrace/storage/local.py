"""A lake's place in a folder of this machine, or of a disk that several machines share.

A file that is replaced is written under another name first; a commit is a hard link, which never replaces anything. The
disk keeps for good only what was synced: content first, then the names in the folder.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from tailrace.failpoint import failpoint
from tailrace.storage.door import StoredFile
from tailrace.storage.files import Disk, replace, sync, write
from tailrace.storage.line_file import LineFile

THREADS = 8
"""A sync waits for the disk, which takes several at once."""

Made = TypeVar("Made")


class _LakeDisk(Disk):
    """Readers of the lake may be other users: the umask says."""

    mode = 0o666


_DISK = _LakeDisk()


@dataclass(frozen=True)
class LocalFolder:
    """Implements `Storage`. Names of files may also be absolute paths: other writers' commits can have them."""

    root: Path
    """The whole lake's folder. It and all above it are durable already."""
    folder: str = ""

    @property
    def path(self) -> Path:
        return self.root / self.folder

    @property
    def address(self) -> str:
        return str(self.path)

    @property
    def access(self) -> Mapping[str, str]:
        return {}

    @property
    def loses_unsynced(self) -> bool:
        return True

    @property
    def cache(self) -> Path:
        return self.path

    def at(self, folder: str) -> LocalFolder:
        return LocalFolder(self.root, _joined(self.folder, folder))

    def hold(self, name: str, home: Path) -> AbstractContextManager[None]:
        return nullcontext()

    def put(self, name: str, content: bytes, *, is_private: bool = False) -> None:
        path = self._located(name)
        if is_private:
            replace(path, content, point="file.draft")
            return
        with self._draft(name, content) as draft:
            draft.replace(path)
        sync(path.parent)

    def put_new(self, name: str, content: bytes) -> bool:
        with self._draft(name, content) as draft:
            failpoint("storage.draft")
            try:
                os.link(draft, self._located(name))
            except FileExistsError:
                return False
            failpoint("storage.link")
        sync(draft.parent)
        return True

    @contextmanager
    def _draft(self, name: str, content: bytes) -> Iterator[Path]:
        """The content, durable under a name that no reader looks at."""
        path = self._located(name)
        draft = path.with_name(f".{path.name}.{uuid.uuid4()}.tmp")
        try:
            _in_folder(draft, lambda: write(draft, content, disk=_DISK))
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    @contextmanager
    def create(self, name: str) -> Iterator[pa.NativeFile]:
        path = self._located(name)
        sink = _in_folder(path, lambda: pa.OSFile(str(path), "wb"))
        try:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
            sink.close()
        except BaseException:
            with suppress(Exception):
                sink.close()
            # On a full disk it would keep the room that is left.
            path.unlink(missing_ok=True)
            raise

    def get(self, name: str) -> bytes:
        return self._located(name).read_bytes()

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        descriptor = os.open(self._located(name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return [os.pread(descriptor, max(0, end - begin), begin) for begin, end in ranges]
        finally:
            os.close(descriptor)

    def open(self, name: str) -> pa.NativeFile:
        return pa.OSFile(str(self._located(name)), "rb")

    def look(self, name: str) -> StoredFile | None:
        try:
            found = os.stat(os.path.join(self.root, self.folder, name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return StoredFile(name, found.st_size, found.st_mtime_ns)

    def names(self, folder: str = "", after: str = "") -> list[str]:
        try:
            with os.scandir(self._located(folder)) as entries:
                found = [_joined(folder, entry.name) + ("/" if entry.is_dir() else "") for entry in entries]
        except FileNotFoundError:
            return []
        return sorted(name for name in found if name > after)

    def list(self, folder: str = "", after: str = "") -> list[StoredFile]:
        found = (self.look(name) for name in self.names(folder, after) if not name.endswith("/"))
        return [each for each in found if each is not None]

    def mark(self, folder: str = "") -> str | None:
        try:
            return str(os.stat(os.path.join(self.root, self.folder, folder)).st_mtime_ns)
        except FileNotFoundError:
            return None

    def delete(self, names: Iterable[str]) -> None:
        folders = set()
        for name in names:
            self._located(name).unlink(missing_ok=True)
            folders.add(name.rpartition("/")[0])
        for folder in folders - {""}:
            with suppress(OSError):
                # Only where nothing is left in it.
                self._located(folder).rmdir()

    def sync(self, names: Iterable[str], *, is_new: bool = False) -> None:
        files = {self._located(name) for name in names}
        folders = {folder for file in files for folder in file.parents if folder.is_relative_to(self.path)}
        folders.add(self.path)
        if is_new:
            folders |= {folder for folder in self.path.parents if folder.is_relative_to(self.root)}
        _sync_all(files)
        _sync_all(folders)

    def set_aside(self, names: Sequence[str], aside: Path) -> None:
        aside.mkdir(parents=True, exist_ok=True)
        target = aside / str(len(os.listdir(aside)) + 1)
        target.mkdir()
        moved = [self._located(name) for name in names]
        for path in moved:
            shutil.move(path, target / path.name)
        for folder in (target, aside, *{path.parent for path in moved}):
            sync(folder)

    def journal(self, name: str) -> LineFile:
        return LineFile(self._located(f"{name}.jsonl"))

    def _located(self, name: str) -> Path:
        return self.path / name


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _in_folder(path: Path, make: Callable[[], Made]) -> Made:
    """Make a file, and where there is none yet, the folder that it lies in."""
    try:
        return make()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return make()


def _sync_all(paths: set[Path]) -> None:
    if len(paths) < 2:
        list(map(_sync, paths))
        return
    with ThreadPoolExecutor(min(THREADS, len(paths))) as pool:
        list(pool.map(_sync, paths))


def _sync(path: Path) -> None:
    # A file of an older version may have been deleted since.
    with suppress(FileNotFoundError):
        sync(path)
