"""Several processes and threads on one log."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.log.records import IDENTITY, batch, begin, change, commit, open_log, transaction

from tailrace.errors import DefiniteError
from tailrace.log.playback import read
from tailrace.log.reader import LogReader
from tailrace.log.writer import LogOptions, LogWriter

HOLD = """
import sys
from pathlib import Path
from tailrace.log.writer import LogWriter
LogWriter.open(Path(sys.argv[1]), {"source": "postgres", "system_identifier": "7", "database": "shop"})
print("held", flush=True)
sys.stdin.read()
"""


def test_the_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DefiniteError, match=f"is being written by process {holder.pid} on host"):
            LogWriter.open(tmp_path, IDENTITY)
        holder.kill()
        holder.wait()
    LogWriter.open(tmp_path, IDENTITY).close()


def test_a_reader_that_follows_a_live_log_sees_every_transaction_once_and_whole(tmp_path: Path) -> None:
    writer = open_log(tmp_path, LogOptions(segment_bytes_max=20_000))
    thread = threading.Thread(target=write_interleaved, args=(writer, 200))
    reader = LogReader(tmp_path)
    thread.start()
    done, found = 0, []
    while done < 200:
        upto = reader.refresh().seq
        for piece in reader.ranges(done, upto, 5000):
            for rows in read(tmp_path, piece, done, upto):
                found += list(zip(rows["seq"].to_pylist(), rows["payload"].to_pylist(), strict=True))
        done = upto
    thread.join()
    assert found == [(seq, b"%d-%d" % (seq, part)) for seq in range(1, 201) for part in (1, 2)]


def write_interleaved(writer: LogWriter, count: int) -> None:
    writer.append(batch([begin(1_000_000), change(1_000_000, b"never committed")]))
    for number in range(1, count + 1):
        records = transaction(number, number * 100, b"%d-1" % number, b"%d-2" % number)
        writer.append(batch(records[:2]))
        if number % 3:
            writer.flush()
        writer.append(batch([change(1_000_000, b"x" * 500), *records[2:]]))
        writer.flush()
    writer.append(batch([commit(1_000_000, 1_000_000)]))
