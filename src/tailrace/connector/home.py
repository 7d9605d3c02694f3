"""Where a lake keeps what it knows about itself.

    LAKE/public/orders/          a Delta table
    LAKE/_tailrace/source.json   which source this is a copy of, its slot and publication
    LAKE/_tailrace/log/          the transaction log
    LAKE/_tailrace/cuts.jsonl    published cuts
    LAKE/_tailrace/recopy.json   tables that must be copied anew, while there are any
    LAKE/_tailrace/lock          held by the running connector

`source.json` is written before the slot is created: a slot of ours that nothing on disk names
would hold back the server's WAL for ever.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.lake.cuts import Cuts
from tailrace.model.table import TableId

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class SourceRecord:
    """The source a lake belongs to. Stored."""

    identity: Mapping[str, str]
    slot: str
    publication: str
    owns_slot: bool
    owns_publication: bool
    timeline: int = 1
    """The server's timeline; another one means a failover."""


class LakeHome:
    """The folders and files of one lake."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._own = self.path / "_tailrace"
        self.log = self._own / "log"
        self.spark_log = self._own / "spark.log"
        self.cuts = Cuts(self._own / "cuts.jsonl")

    @classmethod
    def create(cls, path: Path) -> LakeHome:
        """The home at `path`, made if need be."""
        home = cls(path)
        _require_folder(home.path)
        if home.path.is_dir() and not home._own.is_dir() and any(home.path.iterdir()):
            raise DefiniteError(f"{path} is not empty and not a lake of Tailrace", "name an empty or a new folder")
        try:
            home._own.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DefiniteError(f"cannot create {path}: {error.strerror}", "choose a folder you may write to") from None
        return home

    @classmethod
    def find(cls, path: Path) -> LakeHome:
        """The home at `path`, which must be a lake."""
        home = cls(path)
        _require_folder(home.path)
        if home.source() is None:
            raise DefiniteError(f"{path} is not a lake of Tailrace", f"make one with: tailrace sync DSN {path}")
        return home

    def table_path(self, table: TableId) -> Path:
        return self.path / _file_name(table.namespace) / _file_name(table.name)

    def source(self) -> SourceRecord | None:
        """What this lake is a copy of; None for a new one."""
        try:
            return SourceRecord(**json.loads((self._own / "source.json").read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise DefiniteError(f"{self._own / 'source.json'} is damaged", "restore it from a backup") from None

    def claim(
        self, identity: Mapping[str, str], slot: str | None, publication: str | None, timeline: int = 1
    ) -> SourceRecord:
        """This lake's source record, written on the first call. Refuses a lake of another source."""
        found = self.source()
        if found is None:
            name = f"tailrace_{re.sub('[^a-z0-9_]', '_', identity['database'].lower())[:30]}_{secrets.token_hex(4)}"
            record = SourceRecord(
                identity, slot or name, publication or name, slot is None, publication is None, timeline
            )
            self._store("source.json", asdict(record))
            return record
        if dict(found.identity) != dict(identity):
            raise DefiniteError(
                f"{self.path} is a copy of database {found.identity['database']} of another server "
                f"(system {found.identity['system_identifier']})"
                if found.identity["database"] == identity["database"]
                else f"{self.path} is a copy of database {found.identity['database']}, not of {identity['database']}",
                "name another folder for this database",
            )
        for given, kept, option in ((slot, found.slot, "--slot"), (publication, found.publication, "--publication")):
            if given is not None and given != kept:
                raise DefiniteError(f"this lake uses {kept}, not {given}", f"leave out {option}")
        return found

    def recopy(self) -> set[str]:
        """Tables that have a snapshot but must be copied anew: changes of theirs were not sent to us."""
        try:
            return set(json.loads((self._own / "recopy.json").read_bytes()))
        except FileNotFoundError:
            return set()

    def mark_recopy(self, tables: Iterable[str]) -> None:
        """Durable when this returns. An empty set when all have been copied."""
        self._store("recopy.json", sorted(tables))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held by the one connector that writes this lake; freed by the kernel when it dies."""
        descriptor = os.open(self._own / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 32, 0).decode() or "?"
                raise DefiniteError(
                    f"{self.path} is in use by another tailrace (pid {holder})", "wait for it or stop it"
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(descriptor)

    def _store(self, name: str, content: object) -> None:
        target = self._own / name
        draft = target.with_suffix(".new")
        with draft.open("w") as file:
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(target)
        folder = os.open(self._own, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def _require_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise DefiniteError(f"{path} is a file, not a folder", "name a folder for the lake")


def _file_name(name: str) -> str:
    """A name as part of a path: what is not plain is written as `~` and its code."""
    if _PLAIN.fullmatch(name):
        return name
    return "".join(
        c if (c.isalnum() and c.isascii()) or (c == "_" and i) else f"~{ord(c):x}~" for i, c in enumerate(name)
    )
