"""A lake's place in a bucket: S3 and what speaks like it, Google's and Azure's stores.

An object is whole, and there for good, when its put returns: there is nothing to sync, and a crash leaves no torn file.
There are no folders, only names with slashes. A commit is a put under the condition that there is no such object.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError

from tailrace.errors import DefiniteError
from tailrace.storage import files
from tailrace.storage.bucket_client import PATIENCE, StorePatience
from tailrace.storage.bucket_errors import missing
from tailrace.storage.bucket_files import ObjectReader, ObjectWriter
from tailrace.storage.bucket_journal import BucketJournal
from tailrace.storage.bucket_objects import BucketObjects, nanoseconds
from tailrace.storage.bucket_place import BucketPlace
from tailrace.storage.door import StoredFile
from tailrace.storage.folder_lock import session_of
from tailrace.storage.lease import Lease

if TYPE_CHECKING:
    from obstore import ObjectMeta

PART_BYTES = 8 << 20
"""A file that is written piece by piece goes to the store in parts of this size, a few at once. Smaller ones are one
put."""
PARTS_AT_ONCE = 3
DELETED_AT_ONCE = 1000
LEASE_SECONDS = "lease_seconds"
"""The only storage option that is ours."""
LEASE_SECONDS_MIN = 1.0


@dataclass(frozen=True)
class Bucket(BucketObjects):
    """Implements `Storage`."""

    cache_root: Path | None = None
    """None for the user's cache folder, of whatever machine and user this is."""

    @classmethod
    def of(
        cls,
        url: str,
        options: Mapping[str, str] | None = None,
        *,
        patience: StorePatience = PATIENCE,
        cache_root: Path | None = None,
    ) -> Bucket:
        """The folder of a bucket that a URL like `s3://bucket/folder` names. Asks the store nothing."""
        given = dict(options or {})
        seconds = given.pop(LEASE_SECONDS, None)
        place, folder = BucketPlace.parse(url, given)
        if seconds is not None:
            patience = replace(patience, lease_seconds=_lease_seconds(url, seconds))
        return cls(place, folder, patience, cache_root)

    @property
    def access(self) -> Mapping[str, str]:
        return self.place.access

    @property
    def loses_unsynced(self) -> bool:
        return False

    @property
    def cache(self) -> Path:
        own = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        root = self.cache_root or Path(own) / "tailrace" / "buckets"
        # Two stores may have a bucket of one name.
        store = hashlib.sha256(f"{self.place.root} {self.place.endpoint}".encode()).hexdigest()[:16]
        return root / store / self.folder

    def at(self, folder: str) -> Bucket:
        return Bucket(self.place, self.key(folder), self.patience, self.cache_root, guard=self.guard)

    @contextmanager
    def hold(self, name: str, home: Path) -> Iterator[None]:
        # The lease itself is put whether or not it is held.
        own = BucketObjects(self.place, self.folder, self.patience)
        with closing(Lease(own, name, self.patience.lease_seconds, session=session_of(home))) as lease:
            self.guard.require = lease.require
            yield

    @contextmanager
    def create(self, name: str) -> Iterator[pa.NativeFile]:
        target = obstore.open_writer(self.client, self.key(name), buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)

        def explain(error: Exception) -> Exception:
            return self.explained(error, name)

        try:
            yield pa.PythonFile(ObjectWriter(target, explain), mode="w")
        except BaseException as error:
            # Parts that are there already are deleted: they would be paid for.
            with suppress(Exception):
                target.__exit__(type(error), error, None)
            raise
        try:
            target.close()
        except (BaseError, OSError) as error:
            raise explain(error) from None

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        # A store refuses a range that has none of its bytes.
        size = self._size(name)
        wanted = {place: (begin, min(end, size)) for place, (begin, end) in enumerate(ranges) if begin < min(end, size)}
        starts, ends = [begin for begin, _ in wanted.values()], [end for _, end in wanted.values()]
        found = self.ask(name, lambda client, key: obstore.get_ranges(client, key, starts=starts, ends=ends))
        contents = dict(zip(wanted, found, strict=True))
        return [bytes(contents.get(place, b"")) for place in range(len(ranges))]

    def open(self, name: str) -> pa.NativeFile:
        def read(begin: int, end: int) -> bytes:
            return self.ask(name, lambda client, key: bytes(obstore.get_range(client, key, start=begin, end=end)))

        return pa.PythonFile(ObjectReader(self._size(name), read), mode="r")

    def _size(self, name: str) -> int:
        found = self.look(name)
        if found is None:
            raise missing(self.key(name), self.place)
        return found.bytes

    def names(self, folder: str = "", after: str = "") -> list[str]:
        found, folders = self._listed(folder, after)
        return sorted([*(file.name for file in found), *folders])

    def list(self, folder: str = "", after: str = "") -> list[StoredFile]:
        return sorted(self._listed(folder, after)[0], key=lambda file: file.name)

    def _listed(self, folder: str, after: str) -> tuple[Sequence[StoredFile], set[str]]:
        """The files and the folders that lie directly in a folder, after a name."""
        prefix, own = self.key(folder), len(self.key("x")) - 1
        inside = len(self.key(f"{folder}/x" if folder else "x")) - 1
        if after:
            # A store that lists from a name on does not fold what lies deeper.
            found = self.ask(
                folder,
                lambda client, _: obstore.list(client, prefix or None, offset=self.key(after).rstrip("/")).collect(),
            )
            folders = {meta["path"][own : inside + cut + 1] for meta in found if (cut := _slash(meta, inside)) >= 0}
        else:
            result = self.ask(folder, lambda client, _: obstore.list_with_delimiter(client, prefix or None))
            found, folders = result["objects"], {f"{each[own:]}/" for each in result["common_prefixes"]}
        stored = [self._stored(meta, own) for meta in found if _slash(meta, inside) < 0]
        return [file for file in stored if file.name > after], {name for name in folders if name > after}

    @staticmethod
    def _stored(meta: ObjectMeta, own: int) -> StoredFile:
        return StoredFile(meta["path"][own:], meta["size"], nanoseconds(meta["last_modified"]))

    def mark(self, folder: str = "") -> str | None:
        return None

    def delete(self, names: Iterable[str]) -> None:
        keys = [self.key(name) for name in names]
        self.guard.require()
        for begin in range(0, len(keys), DELETED_AT_ONCE):
            some = keys[begin : begin + DELETED_AT_ONCE]
            try:
                obstore.delete(self.client, some)
            except FileNotFoundError:
                # Some stores say of what is not there that it is not there, and leave the others.
                for key in some:
                    self._delete(key)
            except (BaseError, OSError) as error:
                raise self.explained(error, "") from None

    def _delete(self, key: str) -> None:
        try:
            obstore.delete(self.client, key)
        except (BaseError, OSError) as error:
            found = self.explained(error, key)
            if not isinstance(found, FileNotFoundError):
                raise found from None

    def sync(self, names: Iterable[str], *, is_new: bool = False) -> None:
        """There is nothing to do."""

    def set_aside(self, names: Sequence[str], aside: Path) -> None:
        aside.mkdir(parents=True, exist_ok=True)
        target = aside / str(len(os.listdir(aside)) + 1)
        target.mkdir()
        for folder in (target, aside):
            files.sync(folder)
        for name in names:
            path = target / name.rpartition("/")[2]
            files.write(path, self.get(name))
            files.sync(target)
            self.delete([name])

    def journal(self, name: str) -> BucketJournal:
        return BucketJournal(self.at(name))

    def require_reachable(self) -> None:
        """A definite error that says why the bucket cannot be used: it is not there, or we may not list it; a transient
        one where the store does not answer."""
        self.ask("", lambda client, _: obstore.list_with_delimiter(client, self.key("-") or None))


def _lease_seconds(url: str, given: str) -> float:
    with suppress(ValueError):
        if math.isfinite(seconds := float(given)) and seconds >= LEASE_SECONDS_MIN:
            return seconds
    message = f"{url}: the storage option {LEASE_SECONDS} cannot have this value"
    raise DefiniteError(message, f"{LEASE_SECONDS}=30, or another number of seconds, at least {LEASE_SECONDS_MIN:g}")


def _slash(meta: ObjectMeta, inside: int) -> int:
    """Where, after these characters, the object's name has its next slash; -1 where it lies directly in the folder."""
    return meta["path"][inside:].find("/")
