"""One process at a time works in a bucket: an object that it takes and renews, until another one takes it.

    {"number": 12, "session": "…", "change": 7, "holder": "pid … on …", "seconds": 30, "is_free": false}

`number` is the fencing number: one more each time that another session takes the lease. Every change is a put under the
condition that the object is still the one that was read, so of two who take it one does.

No clock of another machine is believed, nor the store's. Whoever holds it counts, by a clock of its own that only runs
forwards, from before it sent the last renewal that was answered: `seconds` later it holds nothing any more. Whoever
wants it watches, by a clock of its own, and takes it when the object has not changed for `seconds` and a tenth more,
counted from after it was read. A renewal is in the store before anyone watches it, so the watch ends after the holder
has stopped. The two clocks may differ by a tenth in how fast they run. They run while a machine sleeps.

A lease that has run out, because the store was away, is renewed all the same. The renewal is put over the object of our
own last one, so where it succeeds no one has had the lease meanwhile, and it is ours again. It is lost when the object
is another session's, or gone.

Processes that cannot live at once may have one session: those of one home, which its lock keeps apart. One that follows
another which was killed takes the lease at once. Two renewals by another session show that its process is alive: there
is nothing to wait for then.

A process that is stopped for a while and wakes up does not hold it: `require` looks at its clock and raises. What it
had sent before may still arrive, and the clocks of a virtual machine stand still while that is paused. For both there
are the fencing number, and the condition of each commit.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

from tailrace.errors import DefiniteError, LeaseLostError, StoreError, TailraceError, TransientError
from tailrace.storage.bucket_files import ObjectTag, TaggedObject
from tailrace.storage.bucket_objects import BucketObjects

RENEWALS = 5
"""So many renewals fit into the time that the lease lasts."""
GRACE = 1.1
"""So many times as long as the lease lasts it is watched."""
POLLS = 20
TRIES = 2
"""Of one renewal."""
RENEWALS_SEEN = 2


def steady_seconds() -> float:
    """A clock that runs only forwards, and also while the machine sleeps."""
    clock: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


@dataclass(frozen=True)
class LeaseTerms:
    """What the object says."""

    number: int
    session: str
    """Whose it is. No two that can be alive at once have the same."""
    change: int
    """Which of the session's changes this is: no two puts have the same content."""
    holder: str
    seconds: float
    is_free: bool

    @classmethod
    def read(cls, found: TaggedObject, address: str) -> LeaseTerms:
        try:
            return cls(**json.loads(found.content))
        except (ValueError, TypeError):
            hint = "delete it when no tailrace works in this bucket"
            raise DefiniteError(f"{address} is damaged", hint) from None

    @property
    def content(self) -> bytes:
        return json.dumps(vars(self)).encode()


@dataclass(frozen=True)
class _Hold:
    terms: LeaseTerms
    tag: ObjectTag
    until: float
    """By our own clock."""


class _Watch:
    """How long the object has not changed while we looked."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun = self._since = clock()
        self._tag: ObjectTag | None = None
        self._session: str | None = None
        self._renewals = 0

    def see(self, tag: ObjectTag | None, session: str | None) -> None:
        """After it was read."""
        if tag != self._tag:
            self._renewals = self._renewals + 1 if session == self._session else 0
            self._tag, self._session, self._since = tag, session, self._clock()

    @property
    def is_renewed(self) -> bool:
        """Whether its holder is alive. One that was killed may have sent one renewal that came while we looked."""
        return self._renewals >= RENEWALS_SEEN

    @property
    def seconds(self) -> float:
        return self._clock() - self._since

    @property
    def seconds_in_all(self) -> float:
        return self._clock() - self._begun


class LeaseHeldError(DefiniteError):
    """Another process has it."""

    @classmethod
    def by(cls, address: str, holder: str) -> LeaseHeldError:
        return cls(f"{address}: in use by another tailrace ({holder})", "wait for it or stop it")


class Lease:
    """Held from construction until `close`, or until it is lost. A `LeaseHeldError` where another process holds it: one
    that has died keeps it for as long as it lasts, and unless `wait_seconds` is less, this waits for that."""

    def __init__(
        self,
        bucket: BucketObjects,
        name: str,
        seconds: float,
        *,
        session: str | None = None,
        wait_seconds: float | None = None,
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        # A request that hangs must not take the time of the renewals after it.
        brief = min(bucket.patience.request_seconds, seconds / RENEWALS)
        patience = replace(bucket.patience, tries=min(bucket.patience.tries, TRIES), request_seconds=brief)
        self._bucket = replace(bucket, patience=patience)
        self._name = name
        self._seconds = seconds
        self._clock = clock
        self._session = session or str(uuid.uuid4())
        self._changes = count()
        self._closing = threading.Event()
        self._lost: str | None = None
        self._told = ""
        """Why it could not be renewed."""
        self._hold = self._take(seconds * GRACE * 2 if wait_seconds is None else wait_seconds)
        self._thread = threading.Thread(target=self._renew_all_the_time, name="lease", daemon=True)
        self._thread.start()

    @property
    def number(self) -> int:
        """The fencing number: higher than that of whoever held it before."""
        return self._hold.terms.number

    def require(self) -> None:
        """Asked before each change. A `LeaseLostError` when it is another's or was given back, and a transient error
        while it has run out and is not renewed yet."""
        what = "was given back" if self._closing.is_set() else self._lost
        if what is not None:
            hint = "only one tailrace may work in a lake: see which one is to, and stop the other"
            raise LeaseLostError(f"{self._address}: the lease {what}", hint)
        if self._clock() >= self._hold.until:
            hint = "it is tried again by itself"
            raise StoreError(f"{self._address}: the lease has run out and is not renewed yet{self._told}", hint)

    def close(self) -> None:
        """Give it back, if it is held: the next one need not wait."""
        self._closing.set()
        self._thread.join()
        if self._lost is None and self._clock() < self._hold.until:
            # Where this fails it ends by itself.
            with suppress(TransientError, DefiniteError):
                self._put(self._changed(is_free=True), self._hold.tag)

    @property
    def _address(self) -> str:
        return f"{self._bucket.address}/{self._name}"

    def _take(self, wait_seconds: float) -> _Hold:
        watch = _Watch(self._clock)
        while True:
            try:
                hold, holder = self._try_to_take(watch)
            except TransientError:
                if watch.seconds_in_all > wait_seconds:
                    raise
                hold = None
            else:
                if hold is not None:
                    return hold
                if watch.is_renewed or watch.seconds_in_all > wait_seconds:
                    raise LeaseHeldError.by(self._address, holder)
            self._closing.wait(self._seconds / POLLS)

    def _try_to_take(self, watch: _Watch) -> tuple[_Hold | None, str]:
        """The lease, or who has it."""
        found = self._bucket.tagged(self._name)
        terms = None if found is None else LeaseTerms.read(found, self._address)
        watch.see(found.tag if found else None, terms.session if terms else None)
        # One that was given up may have come after all, or the process before us has died.
        is_ours = terms is not None and terms.session == self._session
        if terms is not None and is_ours:
            self._changes = count(max(terms.change + 1, next(self._changes)))
        if terms is not None and not (terms.is_free or is_ours or watch.seconds > terms.seconds * GRACE):
            return None, terms.holder
        number = (terms.number if terms is not None else 0) + (not is_ours)
        taken = LeaseTerms(number, self._session, next(self._changes), _holder(), self._seconds, is_free=False)
        sent_at = self._clock()
        tag = self._put(taken, found.tag if found is not None else None)
        if tag is None:
            return None, "who came first"
        return _Hold(taken, tag, sent_at + self._seconds), ""

    def _renew_all_the_time(self) -> None:
        while self._lost is None and not self._closing.wait(self._seconds / RENEWALS):
            try:
                self._renew()
                self._told = ""
            except Exception as error:
                # Also what only a person can mend: as long as no one else takes it, it can become ours again.
                self._told = f" ({error.message if isinstance(error, TailraceError) else type(error).__name__})"

    def _renew(self) -> None:
        hold, terms, sent_at = self._hold, self._changed(is_free=False), self._clock()
        tag = self._put(terms, hold.tag)
        if tag is not None:
            self._hold = _Hold(terms, tag, sent_at + self._seconds)
            return
        found = self._bucket.tagged(self._name)
        if found is None:
            self._lost = "was deleted"
            return
        now = LeaseTerms.read(found, self._address)
        if now.session == self._session:
            # A renewal that was given up has come after all. It does not say when.
            self._hold = replace(hold, tag=found.tag)
        else:
            self._lost = f"was taken by another tailrace ({now.holder})"

    def _changed(self, *, is_free: bool) -> LeaseTerms:
        return replace(self._hold.terms, change=next(self._changes), is_free=is_free)

    def _put(self, terms: LeaseTerms, tag: ObjectTag | None) -> ObjectTag | None:
        return self._bucket.put_over(self._name, terms.content, tag)


def _holder() -> str:
    return f"pid {os.getpid()} on {socket.gethostname()}"
