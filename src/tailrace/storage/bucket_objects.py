"""Single objects of a bucket: put, perhaps under a condition, and got.

The answer to a put under a condition is ambiguous. A try whose answer was lost may have succeeded, and the next try
meets its own object; S3 also says "conflict" when it has written nothing. So these calls look before they believe
either, and put again where nothing is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import obstore
from obstore.exceptions import BaseError

from tailrace.errors import TransientError
from tailrace.storage.bucket_client import PATIENCE, StorePatience, client_of
from tailrace.storage.bucket_errors import TAKEN, StoreAnswer, explained
from tailrace.storage.bucket_files import ObjectTag, TaggedObject
from tailrace.storage.bucket_place import BucketPlace
from tailrace.storage.door import StoredFile

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore

Given = TypeVar("Given")


class WriteGuard:
    """Asked before each change of a bucket's objects; a bucket and its folders share it. It allows everything until it
    is told what to ask. A pickled one arrives as a new one."""

    def __init__(self) -> None:
        self.require: Callable[[], None] = _allow

    def __reduce__(self) -> tuple[Any, ...]:
        return WriteGuard, ()


def _allow() -> None:
    pass


@dataclass(frozen=True)
class BucketObjects:
    """Those in one folder of a bucket. A name that begins with a slash is one from the bucket's root: other writers'
    commits can have them. Pickled, it has the options in it, and reaches the bucket with a client of the process that
    it comes to."""

    place: BucketPlace
    folder: str = ""
    patience: StorePatience = PATIENCE
    guard: WriteGuard = field(default_factory=WriteGuard, compare=False, repr=False, kw_only=True)

    @property
    def address(self) -> str:
        return f"{self.place.root}/{self.folder}".rstrip("/")

    def put(self, name: str, content: bytes, *, is_private: bool = False) -> None:
        self.guard.require()
        self.ask(name, lambda client, key: obstore.put(client, key, content, use_multipart=False))

    def put_new(self, name: str, content: bytes) -> bool:
        for failures in count(1):
            answer = self._try(name, content, "create")
            if not isinstance(answer, Exception):
                return True
            if self.look(name) is not None:
                return False
            self._pause(answer, failures)
        raise AssertionError

    def put_over(self, name: str, content: bytes, tag: ObjectTag | None) -> ObjectTag | None:
        """Put a file if the one of this tag is still there, or none, for None. The new one's tag; None where another
        one is there, and nothing is changed then. No one else may put this content under this name."""
        for failures in count(1):
            answer = self._try(name, content, "create" if tag is None else tag.condition)
            if isinstance(answer, ObjectTag):
                return answer
            found = self.tagged(name)
            if found is not None and found.content == content:
                return found.tag
            if tag != (found.tag if found else None):
                return None
            self._pause(answer, failures)
        raise AssertionError

    def _try(self, name: str, content: bytes, mode: PutMode) -> ObjectTag | Exception:
        """Where the condition was not met, or it is not known what became of the put, what was answered."""
        self.guard.require()
        try:
            return ObjectTag.of(obstore.put(self.client, self.key(name), content, mode=mode))
        except (BaseError, OSError) as error:
            answer = self.explained(error, name)
            if isinstance(error, TAKEN) or isinstance(answer, TransientError):
                return answer
            raise answer from None

    def _pause(self, answer: Exception, failures: int) -> None:
        if failures >= self.patience.tries:
            raise answer
        time.sleep(self.patience.backoff.seconds(failures))

    def tagged(self, name: str) -> TaggedObject | None:
        """A file with its tag, for `put_over`; None when there is none."""

        def read(client: ObjectStore, key: str) -> TaggedObject:
            found = obstore.get(client, key)
            return TaggedObject(bytes(found.bytes()), ObjectTag.of(found.meta))

        try:
            return self.ask(name, read)
        except FileNotFoundError:
            return None

    def tag_of(self, name: str) -> ObjectTag | None:
        """The tag alone, which costs a look."""
        try:
            return ObjectTag.of(self.ask(name, obstore.head))
        except FileNotFoundError:
            return None

    def get(self, name: str) -> bytes:
        return self.ask(name, lambda client, key: bytes(obstore.get(client, key).bytes()))

    def look(self, name: str) -> StoredFile | None:
        try:
            found = self.ask(name, obstore.head)
        except FileNotFoundError:
            return None
        return StoredFile(name, found["size"], nanoseconds(found["last_modified"]))

    @property
    def client(self) -> ObjectStore:
        return client_of(self.place, self.patience)

    def key(self, name: str) -> str:
        if name.startswith("/"):
            return name[1:]
        return f"{self.folder}/{name}" if self.folder and name else name or self.folder

    def ask(self, name: str, request: Callable[[ObjectStore, str], Given]) -> Given:
        try:
            return request(self.client, self.key(name))
        except (BaseError, OSError) as error:
            raise self.explained(error, name) from None

    def explained(self, error: Exception, name: str) -> Exception:
        if StoreAnswer.of(error).is_forbidden_without_a_reason:
            try:
                obstore.list_with_delimiter(self.client, "-")
            except BaseError as again:
                error = again
        return explained(error, self.place, self.key(name))


def nanoseconds(time_of: datetime) -> int:
    """In whole seconds: a list may be more exact than a look."""
    return int(time_of.timestamp()) * 1_000_000_000
