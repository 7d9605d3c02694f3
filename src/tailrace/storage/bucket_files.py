"""Objects of a bucket, also as files: one that is read here and there, and one that is written piece by piece.

Arrow takes any object with these methods for a file (`pa.PythonFile`).
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutResult, UpdateVersion, WritableFile
    from typing_extensions import Buffer

Ranges = Callable[[int, int], bytes]


@dataclass(frozen=True)
class ObjectTag:
    """Which of all objects that had a name this one is."""

    e_tag: str
    version: str | None

    @classmethod
    def of(cls, described: ObjectMeta | PutResult) -> ObjectTag:
        return cls(described["e_tag"] or "", described["version"])

    @property
    def condition(self) -> UpdateVersion:
        """obstore takes no version that is None."""
        return {"e_tag": self.e_tag} if self.version is None else {"e_tag": self.e_tag, "version": self.version}


@dataclass(frozen=True)
class TaggedObject:
    """An object, and which one it is."""

    content: bytes
    tag: ObjectTag


class ObjectReader(io.RawIOBase):
    """One request for each read: what reads Parquet asks for whole column chunks."""

    def __init__(self, size: int, read_range: Ranges) -> None:
        super().__init__()
        self._size = size
        self._read_range = read_range
        self._place = 0

    def read(self, size: int | None = -1) -> bytes:
        rest = max(0, self._size - self._place)
        wanted = rest if size is None or size < 0 else min(size, rest)
        content = self._read_range(self._place, self._place + wanted) if wanted else b""
        self._place += len(content)
        return content

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class ObjectWriter(io.RawIOBase):
    """Passes on what is written. Closing it does not make the object: whoever opened the target does."""

    def __init__(self, target: WritableFile, explain: Callable[[Exception], Exception]) -> None:
        super().__init__()
        self._target = target
        self._explain = explain
        self._place = 0

    def write(self, content: Buffer) -> int:
        piece = bytes(content)
        try:
            self._target.write(piece)
        except Exception as error:
            raise self._explain(error) from None
        self._place += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._place

    def writable(self) -> bool:
        return True
