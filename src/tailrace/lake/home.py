"""Where a lake keeps what it knows about itself.

    LAKE/public/orders/          a table in the lake's format
    LAKE/_tailrace/source.json   which source this is a copy of, and what was claimed there
    LAKE/_tailrace/tables.json   the state of every table
    LAKE/_tailrace/cuts.jsonl    published cuts
    LAKE/_tailrace/confirmed.json  up to where the source was told, as long as that is no more than cuts have

That much is the lake, wherever it lies: who reads it needs no more. The *home* is a local folder of whoever writes it.
A lake in a folder has it inside, as LAKE/_tailrace; of any other lake it is a folder of its own.

    HOME/log/          the transaction log
    HOME/choices.json  which tables were taken in or left out since the lake began
    HOME/requests/     what people asked the connector for and it has not taken up yet
    HOME/windows/      rows that were read and are not in a table yet
    HOME/signals.json  every signal, what became of it, and how far each channel has been read
    HOME/snapshots.json  which copies signals asked for, and what is paused
    HOME/notifications.jsonl  the steps of copies, the last ones
    HOME/offsets.jsonl  edits of the offsets, each with who made it and what became of it
    HOME/damaged/      what a crash left of a table's newest versions, kept for a person
    HOME/vouched       up to which commit the log can be laid over the tables
    HOME/state.json    the connector's state
    HOME/left.json     how the last run left the lake, if it ended in order
    HOME/verifications/  what the last verifications that a server ran have found
    HOME/maintained    an empty file, as old as the last look for what can be deleted
    HOME/lock          held by the running connector
    HOME/lake.json     which lake it is the home of, where that does not follow from where it lies
    HOME/session.json  the name by which a lake in a bucket knows who has the lock of this home

A lake in a bucket has LAKE/_tailrace/lease.json too: which connector holds it, with which home. The lock keeps a home
for one process, the lease keeps a bucket for one home.

`source.json` is written before anything is made at the source: a slot of ours that nothing durable names
would hold back the server's WAL for ever.
"""

from __future__ import annotations

import hashlib
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
from tailrace.lake.records.confirmed import ConfirmedFile
from tailrace.lake.records.notifications import Notifications
from tailrace.lake.records.offset_history import OffsetHistory
from tailrace.lake.records.ordered_copies import SnapshotsFile
from tailrace.lake.records.requests import Requests
from tailrace.lake.records.signal_book import SignalBook
from tailrace.lake.records.table_states import TableStates, VouchedFile
from tailrace.model.lake_address import LakeAddress, parse_lake
from tailrace.model.table import TableId
from tailrace.storage.door import Storage
from tailrace.storage.files import read_json, sync, write_json
from tailrace.storage.folder_lock import FolderLock, HeldError, note_of_holder
from tailrace.storage.local import LocalFolder

OWN = "_tailrace"
"""The folder for what a lake knows about itself. No table has it: its name begins with no letter."""
SOURCE = f"{OWN}/source.json"
LEASE = f"{OWN}/lease.json"
OWNER = "lake.json"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_HASH_DIGITS = 12


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


class SignalFiles:
    """What people ask of a connector, and what becomes of it."""

    def __init__(self, home: Path) -> None:
        self.requests = Requests(home / "requests")
        self.book = SignalBook(home / "signals.json")
        self.snapshots = SnapshotsFile(home / "snapshots.json")
        self.notifications = Notifications(home / "notifications.jsonl")


class RunFiles:
    """What runs leave for those who look from outside, and for the next run."""

    def __init__(self, home: Path) -> None:
        self.messages = home / "tailrace.log"
        self.spark_log = home / "spark.log"
        self.state = home / "state.json"
        self.left = LeftFile(home / "left.json")
        self.maintained = home / "maintained"
        self.vouched = VouchedFile(home / "vouched")
        self.verifications = home / "verifications"


class LakeHome:
    """One lake, and the folders and files of its home."""

    def __init__(self, lake: str | LakeAddress, storage: Storage | None = None) -> None:
        """`storage` is the lake's place, where that does not follow from its address."""
        parsed = parse_lake(lake)
        self.lake: LakeAddress = parsed.absolute() if isinstance(parsed, Path) else parsed
        self.folder = home_of(self.lake)
        self.storage = storage or _place_of(self.lake)
        self.cuts = Cuts(self.storage.journal(f"{OWN}/cuts"))
        self.tables = TableStates(self.storage, f"{OWN}/tables.json")
        self.confirmed = ConfirmedFile(self.storage, f"{OWN}/confirmed.json")
        self.log = self.folder / "log"
        self.windows = self.folder / "windows"
        self.choices = Choices(self.folder / "choices.json")
        self.offsets = OffsetHistory(self.folder / "offsets.jsonl")
        self.signals = SignalFiles(self.folder)
        self.runs = RunFiles(self.folder)

    @classmethod
    def create(cls, lake: str | LakeAddress, storage: Storage | None = None) -> LakeHome:
        """The home of a lake, made where there is none."""
        lake = parse_lake(lake)
        home = cls(lake, storage)
        home._require_free()
        home._require_own()
        made = [folder for folder in (home.folder, *home.folder.parents) if not folder.exists()]
        try:
            home.folder.mkdir(0o700, parents=True, exist_ok=True)
            for folder in made:
                sync(folder.parent)
        except OSError as error:
            what = lake if isinstance(lake, Path) else home.folder
            raise DefiniteError(f"cannot create {what}: {error.strerror}", "choose a folder you may write to") from None
        return home

    @classmethod
    def find(cls, lake: str | LakeAddress, storage: Storage | None = None) -> LakeHome:
        """The home of a lake, which must be one. The home itself need not be on this machine."""
        lake = parse_lake(lake)
        home = cls(lake, storage)
        _require_folder(home.lake)
        home._require_own()
        if home.source() is None:
            raise DefiniteError(f"{lake} is not a Tailrace lake", f"make one with: tailrace sync DSN {lake}")
        return home

    @classmethod
    def is_new(cls, lake: str | LakeAddress, storage: Storage | None = None) -> bool:
        """Whether a lake has yet to begin; a definite error if it cannot begin there. Makes nothing."""
        home = cls(lake, storage)
        home._require_free()
        home._require_own()
        is_new = home.source() is None
        if is_new and not home.is_inside and home.log.exists():
            message = f"there is no lake in {home.lake}, but {home.folder} has the log of one that was there"
            raise DefiniteError(message, "remove that folder to begin the lake again, or name another: --home FOLDER")
        return is_new

    def _require_free(self) -> None:
        _require_folder(self.lake)
        names = set() if self.is_inside and self.folder.is_dir() else set(self.storage.names())
        if names and f"{OWN}/" not in names:
            raise DefiniteError(f"{self.lake} is not empty and not a Tailrace lake", "name an empty or a new folder")

    def _require_own(self) -> None:
        """A definite error for a folder that is the home of another lake. To work with the log of another one would
        show when it is too late."""
        owner = None if self.is_inside else read_json(self.folder / OWNER)
        if owner not in (None, self._owner):
            message = f"{self.folder} is the home of another lake, {owner.get('lake')}"
            raise DefiniteError(message, "name another folder: --home FOLDER")

    @property
    def _owner(self) -> dict[str, str]:
        """Which lake it is, in a home of its own. Two stores may have a bucket of one name."""
        return {"lake": str(self.lake), "store": self.storage.access.get("endpoint", "")}

    @property
    def is_inside(self) -> bool:
        """Whether the home is a folder of the lake: then one is never there without the other."""
        return isinstance(self.lake, Path)

    @property
    def shared_folder(self) -> Path:
        """The folder that tasks must see, wherever they run: all of it, or what of it is no bucket's."""
        return self.lake if isinstance(self.lake, Path) else self.folder

    @property
    def is_here(self) -> bool:
        """Whether a connector has worked with this home. What it took from the source is in its log."""
        return self.is_inside or (self.folder / OWNER).exists()

    @property
    def has_log(self) -> bool:
        """Whether there is a log that can be read. A log that is begun has not yet."""
        return (self.log / "head").exists()

    @property
    def folds_case(self) -> bool:
        """Whether the lake's place takes two names that differ only in case for one."""
        return self.is_inside and self.folder.with_name(self.folder.name.upper()).exists()

    def place_of(self, table: TableId) -> Storage:
        """Where the table lies, or will."""
        return self.storage.at(f"{_file_name(table.namespace)}/{_file_name(table.name)}")

    def damaged_path(self, table: TableId) -> Path:
        """Where files of the table go that a crash left in pieces."""
        return self.folder / "damaged" / _file_name(table.namespace) / _file_name(table.name)

    def damaged_folders(self) -> list[Path]:
        """One for each time that a table had to go back."""
        return sorted((self.folder / "damaged").glob("*/*/*"))

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
            return SourceRecord(**json.loads(self.storage.get(SOURCE)))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise DefiniteError(f"{self.storage.address}/{SOURCE} is damaged", "restore it from a backup") from None

    def require_identity(self, identity: Mapping[str, str]) -> None:
        """A definite error if this is the lake of another source; a `GapError` if only the server is another."""
        found = self.source()
        if found is None or dict(found.identity) == dict(identity):
            return
        theirs, ours = found.identity.get("database"), identity.get("database")
        if theirs != ours or found.kind != identity.get("source"):
            message = f"{self.lake} is a copy of database {theirs}, not of {ours}"
            raise DefiniteError(message, "name another folder for this database")
        raise GapError(
            f"{self.lake} is a copy of database {theirs} of another server ({_words(found.identity)})",
            "name another folder for this database; or, if this server has taken the place of that one, repair the "
            "lake with --snapshot-mode when_needed: every table is copied again, by windows",
        )

    def begin(self, record: SourceRecord) -> None:
        """The first record of a lake. Durable when this returns. A definite error where another machine began a lake in
        this place at the same moment."""
        if self.is_inside:
            return self.store_source(record)
        content = _written(record)
        if not self.storage.put_new(SOURCE, content) and self.storage.get(SOURCE) != content:
            raise DefiniteError(f"another tailrace has just begun {self.lake}", "name another place for one of the two")
        return None

    def store_source(self, record: SourceRecord) -> None:
        """Durable when this returns."""
        self.storage.put(SOURCE, _written(record), is_private=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held by the one connector that writes this lake. When it dies, the kernel frees the home at once; a bucket is
        free for another home half a minute later, and for this one at once."""
        try:
            lock = FolderLock(self.folder / "lock", str(os.getpid()))
        except HeldError as error:
            message = f"{self.lake} is in use by another tailrace (pid {error.note.decode() or '?'})"
            raise DefiniteError(message, "wait for it or stop it") from None
        with closing(lock):
            sync(self.folder)
            with self.storage.hold(LEASE, self.folder):
                if not self.is_inside:
                    # Only now: with a home that was refused the lake, no connector has worked.
                    write_json(self.folder / OWNER, self._owner)
                yield

    def holder(self) -> int | None:
        """The process that writes this lake now, if one does."""
        note = note_of_holder(self.folder / "lock")
        return None if note is None else int(note or 0)


def home_of(lake: LakeAddress) -> Path:
    """The local folder for what only those need who write a lake. It need not be there yet."""
    if isinstance(lake, Path):
        return lake / OWN
    if lake.home is not None:
        return lake.home.absolute()
    given = Path(os.environ.get("XDG_STATE_HOME", ""))
    # One that is relative is to be ignored, says the rule of that name.
    states = given if given.is_absolute() else Path.home() / ".local" / "state"
    digest = hashlib.sha256(lake.address.encode()).hexdigest()[:_HASH_DIGITS]
    return states / "tailrace" / "lakes" / f"{lake.name}-{digest}"


def _place_of(lake: LakeAddress) -> Storage:
    if isinstance(lake, Path):
        return LocalFolder(lake)
    if not lake.address.startswith("s3://"):
        raise DefiniteError(
            f"{lake}: only stores that speak S3 can have a lake yet", "name a folder, or s3://BUCKET/NAME"
        )
    # Loaded where it is needed alone.
    from tailrace.storage.bucket import Bucket

    return Bucket.of(lake.address, dict(lake.options))


def _written(record: SourceRecord) -> bytes:
    return json.dumps(asdict(record), indent=2).encode()


def require_fit_place(home: LakeHome) -> None:
    """Before a lake is begun: a definite error for a store that does not keep what commits rely on. Leaves nothing
    there."""
    if not isinstance(home.lake, Path):
        from tailrace.storage.bucket import Bucket
        from tailrace.storage.probe import require_conditional_puts

        if isinstance(home.storage, Bucket):
            require_conditional_puts(home.storage)


def _require_folder(lake: LakeAddress) -> None:
    if isinstance(lake, Path) and lake.exists() and not lake.is_dir():
        raise DefiniteError(f"{lake} is a file, not a folder", "name a folder for the lake")


def _words(identity: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in identity.items() if name not in ("source", "database"))


def _file_name(name: str) -> str:
    """A name as part of a path: what is not plain is written as `~` and its code."""
    if _PLAIN.fullmatch(name):
        return name
    return "".join(
        c if (c.isalnum() and c.isascii()) or (c == "_" and i) else f"~{ord(c):x}~" for i, c in enumerate(name)
    )
