"""A Delta table's own log as files: which versions there are, what each one added, and its stamp.

    _delta_log/00000000000000000007.json                  a commit: one action a line
    _delta_log/00000000000000000007.crc                   what the table comes to at that version; derived
    _delta_log/00000000000000000010.checkpoint.parquet    every action up to a version; derived
    _delta_log/_last_checkpoint                           which checkpoint to look at first; derived
    _delta_log/.00000000000000000007.json.crc             Hadoop's checksums of the file that its name contains

The files are looked at directly: Spark takes half a second to say as much, for each table and start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.lake.delta.file_names import name_of, with_checksums
from tailrace.lake.delta.rows.deletion_vectors import Vector, vector_of
from tailrace.lake.stamp import Stamp
from tailrace.storage.door import Storage

FOLDER = "_delta_log"
LAST_CHECKPOINT = f"{FOLDER}/_last_checkpoint"
COPY = "COPY"
"""The operation that brings a table's rows again, perhaps with another key."""
_NUMBERED = re.compile(rf"{FOLDER}/\.?(\d{{20}})\.\w.*")
_COMMIT = re.compile(rf"{FOLDER}/(\d{{20}})\.json")
_CHECKPOINT = re.compile(rf"{FOLDER}/(\d{{20}})\.checkpoint\..*")


@dataclass(frozen=True)
class RowsFile:
    """A Parquet file that a commit makes part of the table."""

    name: str
    bytes: int
    is_new: bool
    """The commit brought it. Otherwise it was there before, with another deletion vector."""
    vector: Vector | None


@dataclass(frozen=True)
class CommitChanges:
    """What one version changed."""

    stamp: Stamp | None
    added: tuple[RowsFile, ...]
    removed: frozenset[str]
    others: tuple[str, ...]
    """Files that readers of changes want."""

    @property
    def new_files(self) -> set[str]:
        """Every file that came with this version."""
        vectors = {rows.vector.name for rows in self.added if rows.vector is not None}
        return {rows.name for rows in self.added if rows.is_new} | vectors | set(self.others)


class CommitLog:
    """The log of one table. Every call looks at its files."""

    def __init__(self, table: Storage) -> None:
        self.table = table
        self._last_seen = -1

    def versions(self) -> list[int]:
        """Versions with a commit file, oldest first. Old ones that a checkpoint contains are deleted, some or all."""
        return sorted(int(found[1]) for name in self.names() if (found := _COMMIT.fullmatch(name)))

    def newest(self) -> int | None:
        """The newest version. Looks where it was last, and from there on: there may be thousands of files."""
        number = self._last_seen
        if number < 0 or not self.has_commit(number):
            number = max(self.versions(), default=-1)
        while number >= 0 and self.has_commit(number + 1):
            number += 1
        self._last_seen = number
        return number if number >= 0 else None

    def make_durable(self, since: int | None) -> None:
        """Returns when every version after `since` (None: all) survives a power cut.

        Nothing syncs files while they are written: after a power cut the newest commit may be missing, empty or full of
        zeros, and so may the files it names.
        """
        if not self.table.loses_unsynced:
            return
        first = 0 if since is None else since + 1
        files = {name for name in self.names() if (number := number_of(name)) is None or number >= first}
        for version in self.versions():
            if version >= first:
                files.update(with_checksums(self.read(version).new_files))
        # The table's own folder, and its namespace's, may be as new as the table.
        self.table.sync(files, is_new=since is None)

    def mark(self, version: int) -> str | None:
        """A text that a version keeps while it is the newest, is not written again, and no file of the table comes or
        goes; None for one that is not the newest."""
        found = self.table.look(self.commit_file(version))
        marks = [self.table.mark(folder) for folder in (FOLDER, "")]
        if found is None or None in marks or self.has_commit(version + 1):
            return None
        return f"{found.bytes} {found.changed_ns} {marks[0]} {marks[1]}"

    def checkpoints(self) -> set[int]:
        return {int(found[1]) for name in self.names() if (found := _CHECKPOINT.fullmatch(name))}

    def names(self) -> list[str]:
        """Every file of the log, Hadoop's checksums too."""
        return [name for name in self.table.names(FOLDER) if not name.endswith("/")]

    def commit_file(self, version: int) -> str:
        return f"{FOLDER}/{version:020d}.json"

    def checkpoint_file(self, version: int) -> str:
        """A checkpoint that is one file, as we write them."""
        return f"{FOLDER}/{version:020d}.checkpoint.parquet"

    def has_commit(self, version: int) -> bool:
        return self.table.look(self.commit_file(version)) is not None

    def has(self, version: int) -> bool:
        """Whether the version can still be read."""
        return self.has_commit(version) or self.table.look(self.checkpoint_file(version)) is not None

    def stamp(self, version: int) -> Stamp | None:
        """The newest stamp at or before a version; None where no commit file that is left has one. Every version of
        ours has one, so this is one file unless others have written since."""
        stamps = (Stamp.from_json(info.get("userMetadata")) for info in self._infos(version))
        return next(filter(None, stamps), None)

    def key(self, version: int) -> list[str] | None:
        """By which columns, named as files do, the rows of files are ordered; None between a copy and its first
        publish."""
        for info in self._infos(version):
            if Stamp.from_json(info.get("userMetadata")) is None:
                continue
            text = info.get("operationParameters", {}).get("key")
            if text is not None:
                return json.loads(text)  # type: ignore[no-any-return]
            if info.get("operation") == COPY:
                return None
        return None

    def _infos(self, version: int) -> Iterator[Mapping[str, Any]]:
        """What commits say of themselves, from a version backwards, as far as none is missing."""
        for number in range(version, -1, -1):
            try:
                with self._lines(number) as lines:
                    info = _info_in(lines)
            except FileNotFoundError:
                return
            yield info

    def actions(self, version: int) -> list[Mapping[str, Any]]:
        """FileNotFoundError when there is no commit file; a definite error when it is damaged."""
        with self._lines(version) as lines:
            return [json.loads(line) for line in lines]

    def read(self, version: int) -> CommitChanges:
        """FileNotFoundError when there is no commit file; a definite error when it is damaged."""
        with self._lines(version) as lines:
            actions = [json.loads(line) for line in lines]
            removed = frozenset(self._name_of(action["remove"]["path"]) for action in actions if "remove" in action)
            added = (self.rows_file(action["add"], removed) for action in actions if "add" in action)
            others = (self._name_of(action["cdc"]["path"]) for action in actions if "cdc" in action)
            stamp = Stamp.from_json(_info_in(lines).get("userMetadata"))
            return CommitChanges(stamp, tuple(added), removed, tuple(others))

    def rows_file(self, add: Mapping[str, Any], removed: frozenset[str] = frozenset()) -> RowsFile:
        """What an `add` action names; `removed` is what the same commit removes."""
        name = self._name_of(add["path"])
        return RowsFile(name, int(add["size"]), name not in removed, vector_of(self.table, add))

    def _name_of(self, text: str) -> str:
        return name_of(self.table, text)

    @contextmanager
    def _lines(self, version: int) -> Iterator[list[str]]:
        """A commit's actions. A definite error for one that makes no sense to who reads it inside the `with`."""
        name = self.commit_file(version)
        try:
            # Values in it may contain what Unicode counts as the end of a line.
            yield [line for line in self.table.get(name).decode().split("\n") if line]
        except (ValueError, KeyError, TypeError, AttributeError):
            message = f"{self.table.address}/{name} is damaged"
            raise DefiniteError(message, "tailrace sync goes back to the last whole version") from None


def _info_in(lines: list[str]) -> Mapping[str, Any]:
    """ValueError for a commit that does not say whose it is: every commit does."""
    (info,) = [line for line in lines if line.startswith('{"commitInfo"')]
    found: Mapping[str, Any] = json.loads(info)["commitInfo"]
    return found


def number_of(name: str) -> int | None:
    """The version that a file of the log belongs to, Hadoop's checksums too; None for `_last_checkpoint`."""
    found = _NUMBERED.fullmatch(name)
    return int(found[1]) if found else None
