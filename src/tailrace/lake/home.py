"""Where a lake keeps what it knows about itself.

    LAKE/public/orders/          a table in the lake's format
    LAKE/_tailrace/source.json   which source this is a copy of, and what was claimed there
    LAKE/_tailrace/log/          the transaction log
    LAKE/_tailrace/cuts.jsonl    published cuts
    LAKE/_tailrace/tables.json   the state of every table
    LAKE/_tailrace/choices.json  which tables were taken in or left out since the lake began
    LAKE/_tailrace/requests/     what people asked the connector for and it has not taken up yet
    LAKE/_tailrace/windows/      rows that were read and are not in a table yet
    LAKE/_tailrace/signals.json  every signal, what became of it, and how far each channel has been read
    LAKE/_tailrace/snapshots.json  which copies signals asked for, and what is paused
    LAKE/_tailrace/notifications.jsonl  the steps of copies, the last ones
    LAKE/_tailrace/offsets.jsonl  edits of the offsets, each with who made it and what became of it
    LAKE/_tailrace/damaged/      what a crash left of a table's newest versions, kept for a person
    LAKE/_tailrace/vouched       up to which commit the log can be laid over the tables
    LAKE/_tailrace/state.json    the connector's state
    LAKE/_tailrace/left.json     how the last run left the lake, if it ended in order
    LAKE/_tailrace/maintained    an empty file, as old as the last look for what can be deleted
    LAKE/_tailrace/lock          held by the running connector

`source.json` is written before anything is made at the source: a slot of ours that nothing on disk names
would hold back the server's WAL for ever.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tailrace.errors import DefiniteError, GapError
from tailrace.lake.cuts import Cuts
from tailrace.lake.records.choices import Choices
from tailrace.lake.records.clean_shutdown import LeftFile
from tailrace.lake.records.notifications import Notifications
from tailrace.lake.records.offset_history import OffsetHistory
from tailrace.lake.records.ordered_copies import SnapshotsFile
from tailrace.lake.records.requests import Requests
from tailrace.lake.records.signal_book import SignalBook
from tailrace.lake.records.table_states import TableStates
from tailrace.lake.records.vouched import VouchedFile
from tailrace.model.lake_address import BucketLake, LakeAddress, parse_lake
from tailrace.model.table import TableId
from tailrace.storage.door import Storage
from tailrace.storage.files import sync, write_json
from tailrace.storage.folder_lock import FolderLock, HeldError, note_of_holder
from tailrace.storage.local import LocalFolder

OWN = "_tailrace"
"""The folder for what a lake knows about itself. No table has it: its name begins with no letter."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class SourceRecord:
    """The source a lake belongs to, and the format of its tables. Only the claim changes, and the identity when another
    server takes the place of the one that was."""

    identity: Mapping[str, str]
    claim: Mapping[str, Any]
    """What the source made for us, in its own words."""
    format: str

    @property
    def kind(self) -> str:
        return self.identity["source"]


class LakeHome:
    """The folders and files of one lake."""

    def __init__(self, lake: str | LakeAddress) -> None:
        self.path = self.lake = _folder(parse_lake(lake))
        self.storage: Storage = LocalFolder(self.path)
        self._own = self.path / OWN
        self.log = self._own / "log"
        self.spark_log = self._own / "spark.log"
        self.messages = self._own / "tailrace.log"
        self.state_file = self._own / "state.json"
        self.snapshots = SnapshotsFile(self._own / "snapshots.json")
        self.windows = self._own / "windows"
        self.maintained_file = self._own / "maintained"
        self.left = LeftFile(self._own / "left.json")
        self.vouched = VouchedFile(self._own / "vouched")
        self.cuts = Cuts(self.storage.journal(f"{OWN}/cuts"))
        self.tables = TableStates(self._own / "tables.json")
        self.choices = Choices(self._own / "choices.json")
        self.requests = Requests(self._own / "requests")
        self.signals = SignalBook(self._own / "signals.json")
        self.notifications = Notifications(self._own / "notifications.jsonl")
        self.offsets = OffsetHistory(self._own / "offsets.jsonl")

    @classmethod
    def create(cls, lake: str | LakeAddress) -> LakeHome:
        """The home of a lake, made where there is none."""
        lake = parse_lake(lake)
        home = cls(lake)
        home._require_free()
        made = [folder for folder in (home._own, *home._own.parents) if not folder.exists()]
        try:
            home._own.mkdir(0o700, parents=True, exist_ok=True)
            for folder in made:
                sync(folder.parent)
        except OSError as error:
            raise DefiniteError(f"cannot create {lake}: {error.strerror}", "choose a folder you may write to") from None
        return home

    @classmethod
    def find(cls, lake: str | LakeAddress) -> LakeHome:
        """The home of a lake, which must be one."""
        lake = parse_lake(lake)
        home = cls(lake)
        _require_folder(home.path)
        if home.source() is None:
            raise DefiniteError(f"{lake} is not a Tailrace lake", f"make one with: tailrace sync DSN {lake}")
        return home

    @classmethod
    def is_new(cls, lake: str | LakeAddress) -> bool:
        """Whether a lake has yet to become a lake; a definite error if it cannot. Makes nothing."""
        home = cls(lake)
        home._require_free()
        return home.source() is None

    def _require_free(self) -> None:
        _require_folder(self.path)
        if self.path.is_dir() and not self._own.is_dir() and any(self.path.iterdir()):
            raise DefiniteError(f"{self.path} is not empty and not a Tailrace lake", "name an empty or a new folder")

    @property
    def folds_case(self) -> bool:
        """Whether the disk takes two names that differ only in case for one."""
        return self._own.with_name(self._own.name.upper()).exists()

    def place_of(self, table: TableId) -> Storage:
        """Where the table lies, or will."""
        return self.storage.at(f"{_file_name(table.namespace)}/{_file_name(table.name)}")

    def damaged_path(self, table: TableId) -> Path:
        """Where files of the table go that a crash left in pieces."""
        return self._own / "damaged" / _file_name(table.namespace) / _file_name(table.name)

    def damaged_folders(self) -> list[Path]:
        """One for each time that a table had to go back."""
        return sorted((self._own / "damaged").glob("*/*/*"))

    def forget_damaged(self, until: float, *, dry_run: bool = False) -> int:
        """Delete what such folders have if it is older than a time, in seconds since 1970; returns how many folders."""
        old = [folder for folder in self.damaged_folders() if folder.stat().st_mtime < until]
        for folder in old if not dry_run else ():
            shutil.rmtree(folder)
        return len(old)

    def table_named(self, name: str) -> TableId:
        """The table a person means by `namespace.name` or, where only one has it, by `name`. A shell may have taken the
        quotes."""
        known = list(self.tables.load())
        found = (
            [table for table in known if name == str(table)]
            or [table for table in known if name == f"{table.namespace}.{table.name}"]
            or [table for table in known if name == table.name and "." not in name]
        )
        if len(found) != 1:
            what = f"several tables are called {name}" if found else f"the lake has no table {name}"
            raise DefiniteError(what, f"it has {', '.join(map(str, found or known)) or 'none yet'}")
        return found[0]

    def source(self) -> SourceRecord | None:
        """What this lake is a copy of; None for a new one."""
        try:
            return SourceRecord(**json.loads((self._own / "source.json").read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise DefiniteError(f"{self._own / 'source.json'} is damaged", "restore it from a backup") from None

    def require_identity(self, identity: Mapping[str, str]) -> None:
        """A definite error if this is the lake of another source; a `GapError` if only the server is another."""
        found = self.source()
        if found is None or dict(found.identity) == dict(identity):
            return
        theirs, ours = found.identity.get("database"), identity.get("database")
        if theirs != ours or found.kind != identity.get("source"):
            message = f"{self.path} is a copy of database {theirs}, not of {ours}"
            raise DefiniteError(message, "name another folder for this database")
        raise GapError(
            f"{self.path} is a copy of database {theirs} of another server ({_words(found.identity)})",
            "name another folder for this database; or, if this server has taken the place of that one, repair the "
            "lake with --snapshot-mode when_needed: every table is copied again, by windows",
        )

    def store_source(self, record: SourceRecord) -> None:
        """Durable when this returns."""
        write_json(self._own / "source.json", asdict(record))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held by the one connector that writes this lake; freed by the kernel when it dies."""
        try:
            lock = FolderLock(self._own / "lock", str(os.getpid()))
        except HeldError as error:
            message = f"{self.path} is in use by another tailrace (pid {error.note.decode() or '?'})"
            raise DefiniteError(message, "wait for it or stop it") from None
        with closing(lock):
            sync(self._own)
            yield

    def holder(self) -> int | None:
        """The process that writes this lake now, if one does."""
        note = note_of_holder(self._own / "lock")
        return None if note is None else int(note or 0)


def _folder(lake: LakeAddress) -> Path:
    if isinstance(lake, BucketLake):
        raise DefiniteError(f"{lake} lies in a bucket, where no lake can lie yet", "name a folder for the lake")
    return lake.absolute()


def _require_folder(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise DefiniteError(f"{path} is a file, not a folder", "name a folder for the lake")


def _words(identity: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in identity.items() if name not in ("source", "database"))


def _file_name(name: str) -> str:
    """A name as part of a path: what is not plain is written as `~` and its code."""
    if _PLAIN.fullmatch(name):
        return name
    return "".join(
        c if (c.isalnum() and c.isascii()) or (c == "_" and i) else f"~{ord(c):x}~" for i, c in enumerate(name)
    )
