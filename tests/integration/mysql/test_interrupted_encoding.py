"""The events of real servers into a real log that is left at any event and begun again."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pytest
from tests.integration.mysql.binlog import position, raw_events
from tests.integration.mysql.capturing import Capturing, assert_log_is_the_table, names, names_at
from tests.integration.mysql.test_binlog_capture import TABLE, write
from tests.mysql_servers import MYSQL, MySqlServer

from tailrace.log.write.writer import LogWriter
from tailrace.source.mysql.events.event import EventKind
from tailrace.source.mysql.stream.capture import resume_place
from tailrace.source.mysql.stream.encoder import BinlogEncoder
from tailrace.source.mysql.stream.places import BinlogPlace
from tailrace.source.mysql.stream.reading import BinlogReading

_LOG_POS_AT = 13


def description(data: bytes) -> bytes:
    """A file's description as a server sends it to a reader that begins in the middle of the file."""
    moved = data[:_LOG_POS_AT] + bytes(4) + data[_LOG_POS_AT + 4 : -4]
    return moved + struct.pack("<I", zlib.crc32(moved))


@pytest.mark.parametrize("seed", range(4))
def test_a_log_that_is_left_at_any_event_has_each_transaction_once(
    server: MySqlServer, database: str, tmp_path: Path, seed: int
) -> None:
    server.execute(TABLE, database=database)
    capturing, begin = Capturing(server, tmp_path / "log"), position(server)
    write(server, database, seed, 15)
    xa = f"'{database}-xa'"
    prepare = (f"xa start {xa}", "replace into t values (500, 1, 'x')", f"xa end {xa}", f"xa prepare {xa}")
    server.execute(*prepare, database=database)
    server.execute("replace into t values (501, 1, 'y')", f"xa commit {xa}", database=database)
    if server.make is MYSQL:
        server.execute("set binlog_transaction_compression = on", "delete from t where id < 9", database=database)
    sent = list(raw_events(server, begin))
    reading = BinlogReading(BinlogPlace.of(capturing.claim.begin), capturing.claim.base)
    places = []
    for data in sent:
        places.append(reading.at)
        reading.read(data)
    (file,) = [data for data in sent if data[4] == EventKind.FORMAT]
    generator = random.Random(seed)
    for is_last in (*[False] * 60, True):
        writer = LogWriter.open(capturing.log, capturing.identity.log_identity)
        writer.abandon_active()
        writer.flush()
        place = resume_place(capturing.claim, writer)
        encoder = BinlogEncoder(place, capturing.claim.base, writer.prepared)
        encoder.take(description(file))
        # Those before the first event made for the connection have the same place, and change nothing.
        left = [data for at, data in zip(places, sent, strict=True) if at >= place and data[4] != EventKind.FORMAT]
        count = len(left) if is_last else generator.randrange(len(left) + 1)
        for data in left[:count]:
            encoder.take(data)
            if encoder.records and generator.random() < 0.4:
                writer.append(encoder.records.take())
                if generator.random() < 0.5:
                    writer.flush()
        if is_last:
            writer.append(encoder.records.take())
            writer.flush()
        writer.close()
    wanted = names_at(server, begin)
    # What is prepared has no commit yet: its name comes with its end.
    (prepared,) = set(wanted) - set(names(capturing.log))
    assert names(capturing.log) == [name for name in wanted if name != prepared]
    assert_log_is_the_table(server, capturing.log, database)
