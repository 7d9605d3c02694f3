"""Vouching: up to which commit the log says all that happened to the tables.

What a statement does to all rows at once is not in the log. Only a look at the source's definitions tells of it, and a
full look is the business of the run. In between, this thread asks a cheap question: under a state S of the source, is
the catalog's mark still the one of the last look? Then no definition had moved when S was taken, and every logged
commit that S shows is vouched for, as far as no commit before it is missing in S.

    log     … t7   t8   t9            t8 waits for a standby: S does not show it
    S           shows t7 and t9       vouched: up to t7

The log's head is read before S is taken. So what the log says of columns was read from the catalog before S, too.

Where the mark is another one, nothing more is vouched for until the run has looked, and tables have followed or left.
What dies with the process is the last fraction of a second: readers go less far, never too far.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress

import numpy as np

from tailrace.errors import DefiniteError, TransientError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.source.door import Source

TURN_SECONDS = 0.05
REST_FACTOR = 9
"""The source is asked a tenth of the time at the most."""
RETRY_SECONDS = 1.0
PORTION = 20_000
"""So many transactions are judged at a time."""

logger = logging.getLogger(__name__)


class Vouching:
    """Of one run. A thread of its own from `begin` on; any thread may ask and tell."""

    def __init__(self, home: LakeHome) -> None:
        self._home = home
        newest = home.cuts.newest()
        self._upto = home.vouched.load() or (newest.position.ordinal if newest else 0)
        self._is_settled = False
        self._trusted: str | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._wants_look = False

    @property
    def upto(self) -> int:
        """An ordinal: what committed up to here is vouched for."""
        return self._upto

    @property
    def wants_look(self) -> bool:
        """The catalog is not as it was at the last look, and commits wait to be vouched for."""
        return self._wants_look

    def __enter__(self) -> Vouching:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def begin(self, source: Source, is_settled: bool, mark: str | None) -> None:
        """After a first look."""
        self.trust(is_settled, mark)
        self._thread = threading.Thread(target=self._run, args=(source,), name="vouching", daemon=True)
        self._thread.start()

    def trust(self, is_settled: bool, mark: str | None) -> None:
        """The run has looked. If it `is_settled`, every live table is as its copy has it, and stays so as long as the
        source has this mark. Otherwise one has moved, and has neither followed nor left yet."""
        with self._lock:
            self._is_settled, self._trusted, self._wants_look = is_settled, mark if is_settled else None, False

    def published(self, cut: PublishedCut) -> None:
        """A cut is only made after a look that was taken after its last transaction."""
        with self._lock:
            if self._is_settled:
                self._advance(cut.position.ordinal)

    def _advance(self, upto: int) -> None:
        if upto > self._upto:
            self._upto = upto
            with suppress(OSError):
                # A full disk: readers go less far meanwhile.
                self._home.vouched.store(upto)

    def _run(self, source: Source) -> None:
        seconds = 0.0
        while not self._ended.wait(seconds):
            begun = time.monotonic()
            try:
                self._turn(source)
                seconds = max(TURN_SECONDS, REST_FACTOR * (time.monotonic() - begun))
            except TransientError:
                seconds = RETRY_SECONDS
            except DefiniteError as error:
                # The run meets it, too, and says so.
                logger.warning("cannot look at the source", extra={"reason": error.message})
                seconds = RETRY_SECONDS

    def _turn(self, source: Source) -> None:
        trusted = self._trusted
        if trusted is None or not (self._home.log / "head").exists():
            return
        reader = LogReader(self._home.log)
        after, head = reader.seq_at(self._upto), reader.head.seq
        if after >= head:
            return
        view = source.view()
        if source.mark() != trusted:
            with self._lock:
                self._wants_look = self._trusted == trusted
            return
        for start in range(after, head, PORTION):
            rows = reader.transactions(start, min(head, start + PORTION))
            hidden = np.flatnonzero(source.unseen(view, rows))
            shown = int(hidden[0]) if len(hidden) else rows.num_rows
            with self._lock:
                if shown and self._trusted == trusted:
                    self._advance(rows.column("commit_ordinal")[shown - 1].as_py())
            if shown < rows.num_rows:
                return
