"""The log's writer, killed at any moment."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

from tests.unit.log.records import IDENTITY, played

from tailrace.log.verify import verify
from tailrace.log.write.writer import LogWriter

WRITE = """
import sys
from pathlib import Path
from tests.unit.log.records import IDENTITY, batch, begin, change, commit
from tailrace.log.write.writer import LogOptions, LogWriter
writer = LogWriter.open(Path(sys.argv[1]), IDENTITY, LogOptions(segment_bytes_max=3 << 20))
first = writer.head.seq + 1
writer.abandon_active()
for number in range(first, first + 100_000):
    records = [begin(number), *(change(number, b"%d-%d " % (number, part) * 4000) for part in range(12))]
    writer.append(batch(records))
    writer.append(batch([commit(number, number * 100)]))
    print(writer.flush().seq, flush=True)
"""


def test_a_writer_killed_at_any_moment_loses_nothing_that_it_confirmed(tmp_path: Path) -> None:
    """The kernel continues, so nothing it was told is lost; what counts is where between two calls the writer was."""
    chance = random.Random(7)
    confirmed = 0
    for _ in range(6):
        command = [sys.executable, "-c", WRITE, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            enough = confirmed + chance.randint(1, 12)
            while confirmed < enough:
                confirmed = int(child.stdout.readline())
            threading.Event().wait(chance.random() * 0.01)
            child.kill()
            confirmed = max([confirmed, *(int(line) for line in child.stdout.read().split(b"\n")[:-1] if line)])
        writer = LogWriter.open(tmp_path, IDENTITY)
        assert confirmed <= writer.head.seq <= confirmed + 1
        confirmed = writer.head.seq
        writer.close()
        assert verify(tmp_path).problems == []
        assert played(tmp_path) == [
            (seq, b"%d-%d " % (seq, part) * 4000) for seq in range(1, confirmed + 1) for part in range(12)
        ]
