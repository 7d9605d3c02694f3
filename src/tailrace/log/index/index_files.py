"""The index files of one segment, on the writer's side.

Rows are staged when their records are durable and written right after; what cannot be written stays staged and is
tried again with the next flush. Nothing is synced before the segment is sealed: until then a crash costs only a scan.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from tailrace.log.files.disk import AppendFile, LogDisk
from tailrace.log.files.frame import FrameHead
from tailrace.log.files.layout import INDEX_SUFFIXES, index_path
from tailrace.log.index.index import END_OF_MARKS, FRAME, TRANSACTION, Derived, Mark, seal_frames, seal_transactions


class IndexFiles:
    """Four files that grow together. `draft` keeps them under other names until `publish`."""

    def __init__(self, disk: LogDisk, path: Path, position: int, draft: bool = False) -> None:
        self._disk = disk
        self._targets = [index_path(path, position, suffix) for suffix in INDEX_SUFFIXES]
        names = [target.with_name(target.name + ".tmp") if draft else target for target in self._targets]
        self._files: list[AppendFile] = []
        self._lists_words = 0
        self._marks = 0
        self._is_ended = False
        self.waiting_from: int | None = None
        """The oldest position of a transaction that is not in the files yet."""
        with ExitStack() as on_error:
            on_error.callback(self.close)
            for name in names:
                self._files.append(AppendFile(disk, name))
                self._files[-1].rewind(0)
            on_error.pop_all()

    @property
    def size(self) -> int:
        return sum(file.size for file in self._files)

    @property
    def rows(self) -> int:
        """How many transactions the files hold."""
        return self._files[1].size // TRANSACTION.itemsize

    def add_frame(self, head: FrameHead, offset: int, tables: int) -> None:
        row = np.zeros(1, dtype=FRAME)
        row[0] = (head.position, head.rows, offset, head.bytes, head.keys, tables, 0)
        self._files[0].stage(seal_frames(row).tobytes())

    def add(self, derived: Derived) -> None:
        rows = derived.transactions.copy()
        if len(rows):
            first = int(rows["first_position"].min())
            self.waiting_from = first if self.waiting_from is None else min(first, self.waiting_from)
        rows["lists_start"] += self._lists_words
        self._lists_words += len(derived.lists)
        self._files[1].stage(seal_transactions(rows, derived.lists).tobytes())
        self._files[2].stage(derived.lists.tobytes())
        self._marks += len(derived.marks)
        self._files[3].stage(b"".join(mark.to_bytes() for mark in derived.marks))

    def end(self) -> None:
        """The segment is sealed: say that this is all, in files that do not say so by their size."""
        if not self._is_ended:
            self._files[3].stage(Mark(self._marks, END_OF_MARKS, 0, 0, 0, b"").to_bytes())
            self._is_ended = True

    def drain(self) -> None:
        """Write what is staged, transactions last: who sees a transaction finds all else about it."""
        for which in (0, 2, 3, 1):
            self._files[which].drain()
        self.waiting_from = None

    def sync(self) -> None:
        for file in self._files:
            file.sync()

    def publish(self) -> None:
        """Take the place of the index files that are there."""
        self.drain()
        for file, target in zip(self._files, self._targets, strict=True):
            self._disk.replace(file.path, target)
            file.path = target

    def close(self) -> None:
        for file in self._files:
            file.close()
