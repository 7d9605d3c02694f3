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
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.lake.delta.rows.deletion_vectors import Vector, located, vector_of
from tailrace.lake.stamp import Stamp

LAST_CHECKPOINT = "_last_checkpoint"
COPY = "COPY"
"""The operation that brings a table's rows again, perhaps with another key."""
_NUMBERED = re.compile(r"\.?(\d{20})\.\w.*")
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*")


@dataclass(frozen=True)
class RowsFile:
    """A Parquet file that a commit makes part of the table."""

    path: Path
    bytes: int
    is_new: bool
    """The commit brought it. Otherwise it was there before, with another deletion vector."""
    vector: Vector | None


@dataclass(frozen=True)
class Commit:
    """What one version changed."""

    stamp: Stamp | None
    added: tuple[RowsFile, ...]
    removed: frozenset[Path]
    others: tuple[Path, ...]
    """Files that readers of changes want."""

    @property
    def new_files(self) -> set[Path]:
        """Everything on disk that came with this version."""
        vectors = {rows.vector.path for rows in self.added if rows.vector is not None}
        return {rows.path for rows in self.added if rows.is_new} | vectors | set(self.others)


class CommitLog:
    """The log of the table in one folder. Every call looks at the disk."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.folder = table / "_delta_log"
        self._last_seen = -1

    def versions(self) -> list[int]:
        """Versions with a commit file, oldest first. Old ones that a checkpoint contains are deleted, some or all."""
        return sorted(int(name[:20]) for name in self.names() if _COMMIT.fullmatch(name))

    def newest(self) -> int | None:
        """The newest version. Looks where it was last, and from there on: there may be thousands of files."""
        number = self._last_seen
        if number < 0 or not self.commit_file(number).exists():
            number = max(self.versions(), default=-1)
        while number >= 0 and self.commit_file(number + 1).exists():
            number += 1
        self._last_seen = number
        return number if number >= 0 else None

    def mark(self, version: int) -> str | None:
        """What tells the commit file of a version that is the newest, and both folders: theirs is another one when a
        file was added, replaced or deleted. None for a version that is not the newest. Asked of every table at a
        start, so without paths as objects."""
        folder = str(self.folder)
        try:
            found = os.stat(f"{folder}/{version:020d}.json")
            folders = [os.stat(path).st_mtime_ns for path in (folder, str(self.table))]
        except FileNotFoundError:
            return None
        is_newest = not os.path.exists(f"{folder}/{version + 1:020d}.json")
        return f"{found.st_size} {found.st_mtime_ns} {folders[0]} {folders[1]}" if is_newest else None

    def checkpoints(self) -> set[int]:
        return {int(name[:20]) for name in self.names() if _CHECKPOINT.fullmatch(name)}

    def names(self) -> list[str]:
        """What everything in the folder is called, Hadoop's checksums too."""
        try:
            with os.scandir(self.folder) as entries:
                return [entry.name for entry in entries if entry.is_file()]
        except FileNotFoundError:
            return []

    def files(self) -> list[Path]:
        """Everything in the folder."""
        return [self.folder / name for name in self.names()]

    def commit_file(self, version: int) -> Path:
        return self.folder / f"{version:020d}.json"

    def checkpoint_file(self, version: int) -> Path:
        """A checkpoint that is one file, as we write them."""
        return self.folder / f"{version:020d}.checkpoint.parquet"

    def has(self, version: int) -> bool:
        """Whether the version can still be read."""
        return self.commit_file(version).exists() or self.checkpoint_file(version).exists()

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
                with _read_lines(self.commit_file(number)) as lines:
                    info = _info_in(lines)
            except FileNotFoundError:
                return
            yield info

    def actions(self, version: int) -> list[Mapping[str, Any]]:
        """FileNotFoundError when there is no commit file; a definite error when it is damaged."""
        with _read_lines(self.commit_file(version)) as lines:
            return [json.loads(line) for line in lines]

    def read(self, version: int) -> Commit:
        """FileNotFoundError when there is no commit file; a definite error when it is damaged."""
        with _read_lines(self.commit_file(version)) as lines:
            actions = [json.loads(line) for line in lines]
            removed = frozenset(self._located(action["remove"]["path"]) for action in actions if "remove" in action)
            added = (self.rows_file(action["add"], removed) for action in actions if "add" in action)
            others = (self._located(action["cdc"]["path"]) for action in actions if "cdc" in action)
            stamp = Stamp.from_json(_info_in(lines).get("userMetadata"))
            return Commit(stamp, tuple(added), removed, tuple(others))

    def rows_file(self, add: Mapping[str, Any], removed: frozenset[Path] = frozenset()) -> RowsFile:
        """What an `add` action names; `removed` is what the same commit removes."""
        path = self._located(add["path"])
        return RowsFile(path, int(add["size"]), path not in removed, vector_of(self.table, add))

    def _located(self, text: str) -> Path:
        return located(self.table, text)


@contextmanager
def _read_lines(path: Path) -> Iterator[list[str]]:
    """A commit's actions. A definite error for one that makes no sense to who reads it inside the `with`."""
    try:
        # Values in it may contain what Unicode counts as the end of a line.
        yield [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DefiniteError(f"{path} is damaged", "tailrace sync goes back to the last whole version") from None


def _info_in(lines: list[str]) -> Mapping[str, Any]:
    """ValueError for a commit that does not say whose it is: every commit does."""
    (info,) = [line for line in lines if line.startswith('{"commitInfo"')]
    found: Mapping[str, Any] = json.loads(info)["commitInfo"]
    return found


def number_of(name: str) -> int | None:
    """The version that a file of the log belongs to, Hadoop's checksums too; None for `_last_checkpoint`."""
    found = _NUMBERED.fullmatch(name)
    return int(found[1]) if found else None


def checksums_of(path: Path) -> Path:
    """Where Hadoop keeps its checksums of a file."""
    return path.with_name(f".{path.name}.crc")


def with_checksums(paths: set[Path]) -> Iterator[Path]:
    """These files and Hadoop's checksums of them, as far as they are there."""
    for path in paths:
        yield from (each for each in (path, checksums_of(path)) if each.exists())
