"""What a run that was stopped leaves, in one line: what is published, what comes with the next run, what it costs."""

from __future__ import annotations

from shlex import quote

from tailrace.cli.phrases import phrased
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.lake_address import LakeAddress
from tailrace.model.table_state import COPYING
from tailrace.source.kinds import codec_of


def has_published(lake: LakeAddress) -> bool:
    """Whether the lake can be read."""
    return LakeHome(lake).cuts.newest() is not None


def stopped_text(lake: LakeAddress, *, is_prepared: bool) -> str:
    """Of a run that was stopped; `is_prepared` says that it made something at the source."""
    home = LakeHome(lake)
    record = home.source()
    has_log = home.has_log
    if record is None or not (has_log or is_prepared):
        return "interrupted: nothing was published, and nothing was made at the source"
    cut = home.cuts.newest()
    if cut is None:
        told = "interrupted: nothing is published yet; the same command continues the copy"
    else:
        head_seq = LogReader(home.log).head.seq if has_log else cut.seq
        told = f"stopped: published up to {codec_of(record.kind).format(cut.position)}{_left(home, cut, head_seq)}"
    return f"{told}. {kept_text(lake)}"


def kept_text(lake: LakeAddress) -> str:
    """What a lake costs its source while nothing runs."""
    drop = f"tailrace drop DSN {quote(str(lake))}"
    return phrased(f"Until the next run the source {{kept}}; to give that up: {drop}")


def _left(home: LakeHome, cut: PublishedCut, head_seq: int) -> str:
    """How much is not published yet. None of it is lost."""
    count = head_seq - cut.seq
    left = [f"{count:,} later {'transaction is' if count == 1 else 'transactions are'} in the log"] if count > 0 else []
    copied = sorted(str(table) for table, record in home.tables.load().items() if record.state in COPYING)
    left += [f"{', '.join(copied)} {'is' if len(copied) == 1 else 'are'} not whole yet"] if copied else []
    return f"; {' and '.join(left)}: the next run publishes the rest" if left else ", which is everything in the log"
