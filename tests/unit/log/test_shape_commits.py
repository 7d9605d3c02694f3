"""The commit that brought a shape is that of the transaction that announced it, whatever else committed meanwhile."""

from __future__ import annotations

from pathlib import Path

from tests.unit.log.records import batch, begin, change, commit, open_log, schema, transaction

from tailrace.log.reader import LogReader
from tailrace.log.survey import shape_commit


def test_a_shape_came_with_the_commit_of_the_transaction_that_announced_it(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([schema(1, "id"), *transaction(5, 100, b"before", time_us=1)]))
    writer.append(batch([begin(7), schema(1, "id", "name", xid=7), change(7, b"open")]))
    writer.append(batch([*transaction(8, 200, b"between", time_us=2), commit(7, 300, 3)]))
    writer.append(batch([begin(9), schema(1, "id", "last", xid=9), change(9, b"open")]))
    writer.flush()
    reader = LogReader(tmp_path)
    commits = [(version.schema.names, shape_commit(reader, version)) for version in reader.schemas(1)]
    found = {names: position and (position.ordinal, position.time_us) for names, position in commits}
    assert found[("id",)] is None, "it was there before the first commit"
    assert found[("id", "name")] == (300, 3)
    assert found.get(("id", "last")) is None, "what announced it has not committed"
    writer.close()
