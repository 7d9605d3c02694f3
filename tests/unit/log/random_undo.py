"""Changes that are undone at random, compared with a stack."""

from __future__ import annotations

import random

from tests.unit.log.memory_log import interpret
from tests.unit.log.records import Record, batch, begin, by_transaction, change, commit, played, undo

from tailrace.log.write.writer import LogWriter


def logged(writer: LogWriter, records: list[Record], flush_every: int = 1000) -> list[tuple[int, bytes]]:
    """What playback gives when these records are flushed a few at a time."""
    for start in range(0, len(records), flush_every):
        writer.append(batch(records[start : start + flush_every]))
        writer.flush()
    return played(writer.path, bytes_max=1)


def undo_at_random(writer: LogWriter, seed: int) -> None:
    chance = random.Random(seed)
    records = [begin(7), begin(8)]
    for number in range(300):
        xid, relation, sub_xid = chance.choice([7, 8]), chance.choice([1, 2]), chance.choice([0, 5])
        is_undo = chance.random() < 0.45
        records.append(
            undo(xid, relation, sub_xid) if is_undo else change(xid, b"%d" % number, relation, sub_xid=sub_xid)
        )
    records += [commit(7, 1000), commit(8, 2000)]
    found = by_transaction(logged(writer, records, flush_every=chance.choice([7, 40, 1000])))
    expected = [[c.payload for c in done.effective] for done in interpret(records).finished]
    assert [found.get(1, []), found.get(2, [])] == expected
