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

from tailrace.errors import TransientError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.source.door.codec import Codec
from tailrace.source.door.source import Database
from tailrace.source.door.values import View
from tailrace.stop import Stop

TURN_SECONDS = 0.03
IDLE_SECONDS_MAX = 0.1
"""How long to wait for the next commit after some turns without one."""
REST_FACTOR = 9
"""The source is asked a tenth of the time at the most."""
FORGET_FACTOR = 1.1
"""How fast it is forgotten that asking took less once. On a machine that is busy, most of a turn is waiting."""
RETRY_SECONDS = 1.0
END_SECONDS_MAX = 2.0
PORTION = 20_000
"""How many transactions are judged at a time."""

logger = logging.getLogger(__name__)


class Vouching:
    """Of one run. A thread of its own from `begin` on; any thread may ask and tell."""

    def __init__(self, home: LakeHome) -> None:
        self._home = home
        newest = home.cuts.newest()
        self._upto = home.runs.vouched.load() or (newest.position.ordinal if newest else 0)
        self._is_settled = False
        self._trusted: str | None = None
        self._lock = threading.Lock()
        self._stop = Stop()
        self._thread: threading.Thread | None = None
        self._reader: LogReader | None = None
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
        self._stop.set()
        if self._thread is not None:
            # It may wait for a source that does not answer. What it would still say is true.
            self._thread.join(END_SECONDS_MAX)

    def begin(self, source: Database, codec: type[Codec], is_settled: bool, mark: str | None) -> None:
        """After a first look."""
        self.trust(is_settled, mark)
        self._thread = threading.Thread(target=self._run, args=(source, codec), name="vouching", daemon=True)
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
                self._home.runs.vouched.store(upto)

    def _run(self, source: Database, codec: type[Codec]) -> None:
        seconds, cost = TURN_SECONDS, RETRY_SECONDS
        while not self._stop.wait(seconds):
            try:
                took = self._turn(source, codec)
            except TransientError:
                seconds = RETRY_SECONDS
            except Exception as error:
                # The run meets it, too, and says so. Until it is over, readers go no further.
                logger.warning("cannot vouch for commits", extra={"reason": str(error)})
                self._reader, seconds = None, RETRY_SECONDS
            else:
                if took is None:
                    seconds = min(seconds * 1.5, IDLE_SECONDS_MAX)
                    continue
                cost = min(took, cost * FORGET_FACTOR)
                seconds = max(TURN_SECONDS, REST_FACTOR * cost)

    def _turn(self, source: Database, codec: type[Codec]) -> float | None:
        """How long it took to ask the source; None where there are no commits to ask it for."""
        trusted = self._trusted
        if self._reader is None and self._home.has_log:
            self._reader = LogReader(self._home.log)
        reader = self._reader
        if trusted is None or reader is None or reader.refresh().ordinal <= self._upto:
            return None
        after, head = reader.seq_at(self._upto), reader.head.seq
        if after >= head:
            return None
        begun = time.monotonic()
        view, mark = source.view(), source.mark()
        took = time.monotonic() - begun
        if mark == trusted:
            self._vouch(codec, reader, after, trusted, view)
        else:
            with self._lock:
                self._wants_look = self._trusted == trusted
        return took

    def _vouch(self, codec: type[Codec], reader: LogReader, after: int, trusted: str, view: View) -> None:
        """For what the view shows of the transactions that follow, as far as it shows all."""
        head = reader.head.seq
        for start in range(after, head, PORTION):
            rows = reader.transactions(start, min(head, start + PORTION))
            hidden = np.flatnonzero(codec.unseen(view, rows))
            shown = int(hidden[0]) if len(hidden) else rows.num_rows
            with self._lock:
                if shown and self._trusted == trusted:
                    self._advance(rows.column("commit_ordinal")[shown - 1].as_py())
            if shown < rows.num_rows:
                return
