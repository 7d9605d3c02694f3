"""The door to the place where a lake lies: a folder, or a bucket.

Names are texts with slashes between folders, relative to the place. What a call promises, it promises for the death of
the process; what survives a power cut is said where it matters. A store that keeps every object whole and for good from
the moment that its call returns, as a bucket does, has nothing to `sync`.

Every implementation can be pickled: tasks write and read through it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True)
class StoredFile:
    """A file that is there."""

    name: str
    bytes: int
    changed_ns: int
    """When it was written, in nanoseconds since 1970, by the clock of the place."""


class Journal(Protocol):
    """Lines in the order in which one writer appended them. Any process reads them. A torn line is none."""

    @property
    def address(self) -> str:
        """Where it lies, for a person."""
        ...

    @property
    def mark(self) -> tuple[int, int]:
        """Changes whenever a line is appended; perhaps also when old lines leave. Cheap."""
        ...

    @property
    def end(self) -> int:
        """The place after the last line, for `lines`; 0 for one that no one has begun."""
        ...

    def lines(self, after: int = 0) -> list[str]:
        """The lines that were appended since this was the `end`. After a `replace`, an earlier end means nothing."""
        ...

    def each(self) -> Iterator[str]:
        """All lines, oldest first, with as few of them in memory as the place allows."""
        ...

    def recent(self) -> list[str]:
        """Some of the last lines, at least one where there is any; cheaper than all."""
        ...

    def first(self) -> str | None:
        """The oldest line that is left."""
        ...

    def append(self, line: str) -> None:
        """Survives a power cut when this returns. One process at a time."""
        ...

    def replace(self, lines: Sequence[str]) -> None:
        """These are all lines from now on. Survives a power cut when this returns; readers find the old ones or
        these."""
        ...


class Storage(Protocol):
    """One place. Any thread, any process."""

    @property
    def address(self) -> str:
        """What readers that others wrote call the place."""
        ...

    @property
    def access(self) -> Mapping[str, str]:
        """What readers that others wrote must be told to reach the place: `region`, `endpoint`, `access_key_id` and the
        like, secrets among them. Nothing for a folder."""
        ...

    @property
    def loses_unsynced(self) -> bool:
        """Whether a power cut can take or damage what no one has synced. Where it cannot, there is nothing to `sync`
        and nothing to look for after a crash."""
        ...

    @property
    def cache(self) -> Path:
        """A local folder for what can be made again from the files of the place. It need not be there yet."""
        ...

    def at(self, folder: str) -> Storage:
        """A folder of the place, as a place of its own. It need not be there yet."""
        ...

    def hold(self, name: str, home: Path) -> AbstractContextManager[None]:
        """Keep the place for this process until the `with` ends, by a file of this name where it needs one; a definite
        error while another process has it. `home` is a local folder that this process has locked: whoever had it
        before has ended.

        From when another process could have it, and after the `with`, what would put, replace or delete anything
        through this value or its folders raises. What was sent before may still arrive. Copies that were pickled do not
        ask: what tasks write counts only when a commit names it. A folder does nothing, where its home's lock does it.
        """
        ...

    def put(self, name: str, content: bytes, *, is_private: bool = False) -> None:
        """Write a file, or replace one, as a whole. Survives a power cut when this returns. With `is_private`, only its
        owner may read it, where the place knows owners."""
        ...

    def put_new(self, name: str, content: bytes) -> bool:
        """Write a file as a whole, unless there is one of this name: then this changes nothing and says False. Of
        several writers one wins. Survives a power cut when this returns.

        False may also be the answer to a try that succeeded, where a network lost the first answer: whoever needs to
        know reads the file back.
        """
        ...

    def create(self, name: str) -> AbstractContextManager[pa.NativeFile]:
        """A new file that is written piece by piece, under a name that no one else uses. It is there when the `with`
        ends, and nothing of it is left where that raises. Its content survives a power cut then; its name does after
        the next `sync` of the place."""
        ...

    def get(self, name: str) -> bytes:
        """A whole file. FileNotFoundError when there is none."""
        ...

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Parts of a file, each from a first byte up to a last one that it does not have; shorter at the file's end.
        FileNotFoundError when there is none."""
        ...

    def open(self, name: str) -> pa.NativeFile:
        """A file to read here and there. FileNotFoundError when there is none."""
        ...

    def look(self, name: str) -> StoredFile | None:
        """What is known of a file; None when there is none."""
        ...

    def names(self, folder: str = "", after: str = "") -> list[str]:
        """The whole names of what lies directly in a folder, in their order; those of folders end with a slash. With
        `after`, only what comes after that name."""
        ...

    def list(self, folder: str = "", after: str = "") -> list[StoredFile]:
        """The files that lie directly in a folder. One that is deleted meanwhile may be left out."""
        ...

    def mark(self, folder: str = "") -> str | None:
        """Changes whenever a name comes to this folder or leaves it; None where the place cannot say so cheaply, or the
        folder is not there."""
        ...

    def delete(self, names: Iterable[str]) -> None:
        """What is not there is passed over, and a folder that becomes empty goes too. A folder deletes one after the
        other, a store many at once; a crash leaves any of them."""
        ...

    def sync(self, names: Iterable[str], *, is_new: bool = False) -> None:
        """These files, whoever wrote them, and every name in their folders survive a power cut when this returns, and
        so do the names in the place's own folder. With `is_new`, its own name does too. What is not there is passed
        over."""
        ...

    def set_aside(self, names: Sequence[str], aside: Path) -> None:
        """Move files out of the place, one after the other, into a new local folder in `aside`. Survives a power cut
        when this returns."""
        ...

    def journal(self, name: str) -> Journal:
        """The journal of this name. It need not be there yet."""
        ...
