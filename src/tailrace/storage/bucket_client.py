"""Clients of stores: one for each bucket and process, which all that works with the bucket shares.

obstore's threads do not survive a fork, and what waits for them waits for ever. So a process that was forked from one
which had used a bucket can use none, and says so instead.
"""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from obstore.store import from_url

from tailrace.errors import DefiniteError
from tailrace.model.backoff import Backoff
from tailrace.storage.bucket_errors import explained, invalid_option
from tailrace.storage.bucket_place import BucketPlace

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_METADATA_SERVICE = ("169.254.169.254", 80)
_METADATA_SECONDS = 1.0
_OTHER_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
    "AWS_METADATA_ENDPOINT",
)


_BACKOFF = Backoff(0.1, 3.0)


@dataclass(frozen=True)
class StorePatience:
    """How often a request is tried, and how long each try may take."""

    backoff: Backoff = _BACKOFF
    tries: int = 8
    request_seconds: float = 30.0
    lease_seconds: float = 30.0
    """How long whoever holds the bucket does so after its last renewal."""

    @property
    def seconds(self) -> float:
        """How long it is tried in all, at the most."""
        pauses = sum(self.backoff.seconds(failures) for failures in range(1, self.tries))
        return pauses + self.request_seconds


PATIENCE = StorePatience()


class _Clients:
    """Of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[BucketPlace, StorePatience], ObjectStore] = {}
        self._process: int | None = None

    def get(self, place: BucketPlace, patience: StorePatience) -> ObjectStore:
        if self._process not in (None, os.getpid()):
            message = f"{place.root}: this process was forked from one that had used a bucket already"
            raise DefiniteError(message, 'start it as a new one: multiprocessing.get_context("spawn")')
        with self._lock:
            self._process = os.getpid()
            found = self._made.get((place, patience))
            if found is None:
                place.hide_secrets()
                found = self._made[place, patience] = _made(place, patience)
            return found


_CLIENTS = _Clients()


def client_of(place: BucketPlace, patience: StorePatience) -> ObjectStore:
    """The client of this process for a bucket. A definite error if its options make none."""
    return _CLIENTS.get(place, patience)


def _made(place: BucketPlace, patience: StorePatience) -> ObjectStore:
    _require_credentials(place)
    make: Any = from_url
    client_options = {"timeout": f"{int(patience.request_seconds * 1000)}ms", **place.client_options}
    backoff = patience.backoff
    try:
        made: ObjectStore = make(
            place.root,
            config=place.config or None,
            client_options=client_options,
            retry_config={
                "max_retries": patience.tries - 1,
                "retry_timeout": timedelta(seconds=patience.seconds),
                "backoff": {
                    "init_backoff": timedelta(seconds=backoff.first_seconds),
                    "max_backoff": timedelta(seconds=backoff.most_seconds),
                },
            },
        )
    except Exception as error:
        raise invalid_option(error, place) from None
    return made


def _require_credentials(place: BucketPlace) -> None:
    """Where nothing says which, the machine itself may have some. Without that, obstore would ask for them for
    minutes."""
    given = dict(place.options).keys() & {"access_key_id", "skip_signature", "web_identity_token_file"}
    own = {name for name in dict(place.options) if name.startswith(("container_", "metadata_endpoint"))}
    if place.scheme != "s3" or given or own or any(os.environ.get(name) for name in _OTHER_CREDENTIALS):
        return
    try:
        socket.create_connection(_METADATA_SERVICE, _METADATA_SECONDS).close()
    except OSError:
        raise explained(OSError("/latest/meta-data"), place) from None
