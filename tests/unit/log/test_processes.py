"""Several processes and threads on one log."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.log.records import IDENTITY, batch, begin, change, commit, open_log, played, transaction

from tailrace.errors import DefiniteError
from tailrace.log.index.index_files import IndexFiles
from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.log.verify import unfinished, verify
from tailrace.log.write.writer import LogOptions, LogWriter

HOLD = """
import sys
from pathlib import Path
from tailrace.log.write.writer import LogWriter
LogWriter.open(Path(sys.argv[1]), {"source": "test", "system_identifier": "7", "database": "shop"})
print("held", flush=True)
sys.stdin.read()
"""


def test_a_forked_child_does_not_keep_holding_the_lock(tmp_path: Path) -> None:
    writer = LogWriter.open(tmp_path, IDENTITY)
    holding, waking = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(waking)
        os.read(holding, 1)
        os._exit(0)
    try:
        writer.close()
        LogWriter.open(tmp_path, IDENTITY).close()
    finally:
        os.close(waking)
        os.waitpid(child, 0)
        os.close(holding)


def test_a_writer_that_was_interrupted_between_two_steps_does_not_continue(tmp_path: Path) -> None:
    writer = LogWriter.open(tmp_path, IDENTITY)
    writer.append(batch(transaction(1, 100, b"one")))
    writer.flush()
    writer.append(batch(transaction(2, 200, b"two")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndexFiles, "add_frame", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            writer.flush()
    for again in (writer.flush, writer.roll, lambda: writer.append(batch(transaction(3, 300, b"three")))):
        with pytest.raises(DefiniteError, match="was interrupted"):
            again()
    writer.close()
    LogWriter.open(tmp_path, IDENTITY).close()
    assert played(tmp_path) == [(1, b"one"), (2, b"two")]


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_reader_that_keeps_up_never_stumbles_over_retention(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch(transaction(1, 100, b"x")))
    writer.flush()
    reader = LogReader(tmp_path)
    reader.acknowledge("lake", 0)
    done = threading.Event()

    def write() -> None:
        for number in range(2, 50):
            writer.append(batch(transaction(number, number * 100, b"x")))
            writer.roll()
            writer.retain()
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen, problems = 0, []
    while not done.is_set() or seen < 49:
        upto = reader.refresh().seq
        assert reader.oldest_seq <= seen + 1
        reader.ranges(seen, upto, 1 << 20)
        reader.acknowledge("lake", upto)
        seen = upto
        assert LogReader(tmp_path).head.seq >= upto
        unfinished(tmp_path)
        problems += verify(tmp_path).problems
    thread.join()
    assert problems == []


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
    thread = threading.Thread(target=write_interleaved, args=(writer, 80))
    reader = LogReader(tmp_path)
    thread.start()
    done, found = 0, []
    while done < 80:
        upto = reader.refresh().seq
        for part in reader.ranges(done, upto, 5000):
            for rows in read(tmp_path, part, done, upto):
                found += list(zip(rows["seq"].to_pylist(), rows["payload"].to_pylist(), strict=True))
        done = upto
    thread.join()
    assert found == [(seq, b"%d-%d" % (seq, part)) for seq in range(1, 81) for part in (1, 2)]


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
