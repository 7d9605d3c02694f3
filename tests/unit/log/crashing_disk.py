"""A disk that can fail at any call and lose, in a crash, anything that was not synced.

Files lie in a real directory, so that readers can look at them. Beside it the disk remembers what a power cut would
spare: each file's bytes at its last sync, and each directory's names at its last sync.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.log.files.disk import Bytes, LogDisk


class PowerCutError(BaseException):
    """The process ends here."""


@dataclass
class Content:
    synced: bytes = b""
    last: bytes | None = None
    """When it was unlinked or replaced, what it held."""


class CrashingDisk(LogDisk):
    """`fault` is called before each operation with its name, and may raise."""

    def __init__(self) -> None:
        self.fault: Callable[[str], None] = lambda operation: None
        self._open: dict[int, Content] = {}
        self._names: dict[Path, Content] = {}
        self._durable_names: dict[Path, Content] = {}

    def create(self, path: Path) -> int:
        return self._opened(path, super().create(path))

    def open(self, path: Path) -> int:
        return self._opened(path, super().open(path))

    def write(self, descriptor: int, parts: Sequence[Bytes], offset: int) -> None:
        """A fault in the middle of a write leaves half of it there."""
        whole = b"".join(bytes(part) for part in parts)
        half = len(whole) // 2
        self.fault("write")
        super().write(descriptor, [whole[:half]], offset)
        self.fault("write rest")
        super().write(descriptor, [whole[half:]], offset + half)

    def truncate(self, descriptor: int, size: int) -> None:
        self.fault("truncate")
        super().truncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        self.fault("sync")
        self._open[descriptor].synced = _content(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        self.fault("replace")
        if target in self._names:
            self._names[target].last = target.read_bytes()
        super().replace(source, target)
        self._names[target] = self._names.pop(source)

    def unlink(self, path: Path) -> None:
        self.fault("unlink")
        self._names.pop(path, Content()).last = path.read_bytes()
        super().unlink(path)

    def sync_directory(self, path: Path) -> None:
        self.fault("sync directory")
        kept = {name: content for name, content in self._durable_names.items() if name.parent != path}
        self._durable_names = kept | {name: content for name, content in self._names.items() if name.parent == path}

    def crash(self, choose: Callable[[int], int]) -> None:
        """Leave the directory as a power cut might. `choose(n)` picks a number below n."""
        current = {name: name.read_bytes() for name in self._names}
        found: dict[Path, bytes] = {}
        for name in sorted(self._names.keys() | self._durable_names.keys()):
            candidates = [self._durable_names.get(name), self._names.get(name)]
            content = candidates[0] if candidates[0] is candidates[1] else candidates[choose(2)]
            if content is not None:
                now = current[name] if self._names.get(name) is content else content.last
                found[name] = _after_crash(content.synced, content.synced if now is None else now, choose)
        for name in current:
            os.unlink(name)
        for name, kept in found.items():
            name.write_bytes(kept)
        self._open.clear()
        self._names = {name: Content(kept) for name, kept in found.items()}
        self._durable_names = dict(self._names)

    def _opened(self, path: Path, descriptor: int) -> int:
        self._open[descriptor] = self._names.setdefault(path, Content())
        return descriptor


def fails_at(call: int, error: BaseException | None = None) -> Callable[[str], None]:
    """A fault at the `call`-th operation from now on, and at no other."""
    count = -1

    def fault(operation: str) -> None:
        nonlocal count
        count += 1
        if count == call:
            raise error or OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fault


def _after_crash(synced: bytes, now: bytes, choose: Callable[[int], int]) -> bytes:
    """What is synced stays; of what came after, some bytes are there, some are lost, some were never written."""
    if not now.startswith(synced):
        return (synced, now)[choose(2)]
    cut = len(synced) + choose(len(now) - len(synced) + 1)
    hole = len(synced) + choose(cut - len(synced) + 1)
    hole_end = hole + choose(cut - hole + 1)
    return now[:hole] + bytes(hole_end - hole) + now[hole_end:cut]


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
