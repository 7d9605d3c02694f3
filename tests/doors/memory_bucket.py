"""A bucket in memory: a second implementation of the door to storage, with objects instead of files.

An object is whole, and there for good, from the moment that its put returns. There are no folders, no locks and no
places to sync. A network may lose the answer to a put: `lose_answers` has the next ones lost.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from tailrace.storage.door import StoredFile


@dataclass
class _Objects:
    """What one bucket has."""

    contents: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers_to_lose: int = 0


_BUCKETS: dict[str, _Objects] = {}
"""By their names, so that a copy that was pickled is the same bucket."""


@dataclass(frozen=True)
class MemoryBucket:
    """Implements `Storage`."""

    bucket: str
    cache_folder: Path
    prefix: str = ""

    @property
    def _objects(self) -> _Objects:
        return _BUCKETS.setdefault(self.bucket, _Objects())

    @property
    def address(self) -> str:
        return f"memory://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def access(self) -> Mapping[str, str]:
        return {}

    @property
    def loses_unsynced(self) -> bool:
        return False

    @property
    def cache(self) -> Path:
        return self.cache_folder / self.prefix

    def lose_answers(self, count: int) -> None:
        """To as many of the next calls of `put_new` as succeed."""
        self._objects.answers_to_lose = count

    def at(self, folder: str) -> MemoryBucket:
        return MemoryBucket(self.bucket, self.cache_folder, self._key(folder))

    def hold(self, name: str, home: Path) -> AbstractContextManager[None]:
        return nullcontext()

    def put(self, name: str, content: bytes, *, is_private: bool = False) -> None:
        with self._objects.lock:
            self._objects.contents[self._key(name)] = bytes(content), time.time_ns()

    def put_new(self, name: str, content: bytes) -> bool:
        objects = self._objects
        with objects.lock:
            if self._key(name) in objects.contents:
                return False
            objects.contents[self._key(name)] = bytes(content), time.time_ns()
            if not objects.answers_to_lose:
                return True
            objects.answers_to_lose -= 1
        return self.put_new(name, content)

    @contextmanager
    def create(self, name: str) -> Iterator[pa.NativeFile]:
        sink = pa.BufferOutputStream()
        yield sink
        self.put(name, sink.getvalue().to_pybytes())

    def get(self, name: str) -> bytes:
        try:
            return self._objects.contents[self._key(name)][0]
        except KeyError:
            raise FileNotFoundError(name) from None

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        content = self.get(name)
        return [content[begin:end] for begin, end in ranges]

    def open(self, name: str) -> pa.NativeFile:
        return pa.BufferReader(self.get(name))

    def look(self, name: str) -> StoredFile | None:
        content, changed_ns = self._objects.contents.get(self._key(name), (None, 0))
        return None if content is None else StoredFile(name, len(content), changed_ns)

    def names(self, folder: str = "", after: str = "") -> list[str]:
        begin = f"{folder}/" if folder else ""
        own = len(self._key("x")) - 1
        found = {key[own:] for key in list(self._objects.contents) if key.startswith(self._key(begin))}
        direct = {begin + first + slash for key in found for first, slash, _ in [key[len(begin) :].partition("/")]}
        return sorted(name for name in direct if name > after)

    def list(self, folder: str = "", after: str = "") -> list[StoredFile]:
        found = (self.look(name) for name in self.names(folder, after) if not name.endswith("/"))
        return [each for each in found if each is not None]

    def mark(self, folder: str = "") -> str | None:
        return None

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._objects.contents.pop(self._key(name), None)

    def sync(self, names: Iterable[str], *, is_new: bool = False) -> None:
        """There is nothing to do."""

    def set_aside(self, names: Sequence[str], aside: Path) -> None:
        aside.mkdir(parents=True, exist_ok=True)
        target = aside / str(len(list(aside.iterdir())) + 1)
        target.mkdir()
        for name in names:
            (target / Path(name).name).write_bytes(self.get(name))
            self.delete([name])

    def journal(self, name: str) -> ObjectJournal:
        return ObjectJournal(self.at(name))

    def copy_to(self, folder: Path) -> None:
        """Every object as a file."""
        for key, (content, _) in self._objects.contents.items():
            if key.startswith(self._key("")):
                path = folder / key[len(self._key("x")) - 1 :]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix and name else name or self.prefix


@dataclass(frozen=True)
class ObjectJournal:
    """Implements `Journal`: an object for each line, under its number, and one for all lines up to a number that were
    there when old ones left."""

    objects: MemoryBucket

    @property
    def address(self) -> str:
        return self.objects.address

    @property
    def mark(self) -> tuple[int, int]:
        return 0, self.end

    @property
    def end(self) -> int:
        return max([self._folded()[0], *self._numbers()])

    def lines(self, after: int = 0) -> list[str]:
        upto, folded = self._folded()
        new = [self.objects.get(_name(number)).decode() for number in self._numbers() if number > max(upto, after)]
        return [*(folded if after < upto else []), *new]

    def each(self) -> Iterator[str]:
        return iter(self.lines())

    def recent(self) -> list[str]:
        return self.lines()[-2:]

    def first(self) -> str | None:
        return next(iter(self.lines()), None)

    def append(self, line: str) -> None:
        assert self.objects.put_new(_name(self.end + 1), line.encode()), "there is one writer"

    def replace(self, lines: Sequence[str]) -> None:
        upto = self.end
        self.objects.put("folded", json.dumps([upto, list(lines)]).encode())
        self.objects.delete(_name(number) for number in self._numbers() if number <= upto)

    def _folded(self) -> tuple[int, list[str]]:
        if self.objects.look("folded") is None:
            return 0, []
        upto, lines = json.loads(self.objects.get("folded"))
        return upto, lines

    def _numbers(self) -> list[int]:
        return [int(name) for name in self.objects.names() if name != "folded"]


def _name(number: int) -> str:
    return f"{number:020d}"
