"""A query over one cut and its answer: as JSON, and no more of it than may be sent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from tailrace.lake.home import LakeHome
from tailrace.read.cut import Cut, cut_of
from tailrace.read.values import json_value
from tailrace.server.errors import RequestError, TimedOutError

ANSWER_BYTES_MAX = 32 << 20
ERROR_CHARACTERS_MAX = 4000


@dataclass(frozen=True)
class Query:
    """What is asked."""

    sql: str
    published: bool = False
    as_of: str | None = None
    rows_max: int = 1000
    seconds_max: float = 30.0

    def too_slow(self) -> TimedOutError:
        return TimedOutError(
            f"the query took longer than {self.seconds_max:g} s", "ask for less, or give it more time: seconds_max"
        )


def cut_for(session: Any, home: LakeHome, query: Query) -> Cut[Any]:
    """The cut that the query is asked of."""
    return cut_of(session, home, published=query.published, as_of=query.as_of)


def answer(found: Cut[Any], query: Query, began: float) -> bytes:
    """The answer as JSON. The query `began` at this reading of the monotonic clock."""
    try:
        frame = found.sql(query.sql)
        columns, types = found.engine.columns(frame), found.engine.types(frame)
        rows, is_cut_short = _taken(found.engine.rows(frame, query.rows_max + 1), query.rows_max)
    except found.engine.errors as error:
        raise RequestError(whole_text(error), f"tables: {', '.join(sorted(found.tables)[:50])}") from error
    told = {
        "is_cut_short": is_cut_short,
        "seq": found.seq,
        "position": found.text,
        "committed": found.commit_time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "elapsed_seconds": round(time.monotonic() - began, 4),
    }
    named = _json({"columns": columns, "types": types})
    return b'%b,"rows":[%b],%b' % (named[:-1], b",".join(rows), _json(told)[1:])


def whole_text(error: Exception) -> str:
    """What the engine says, with the place in the query where it tells that."""
    lines = [line.rstrip() for line in str(error).strip().splitlines() if line.strip()]
    return "\n".join(lines)[:ERROR_CHARACTERS_MAX] or type(error).__name__


def _taken(rows: Iterator[tuple[Any, ...]], rows_max: int) -> tuple[list[bytes], bool]:
    """Rows as JSON, and whether there were more."""
    taken: list[bytes] = []
    room = ANSWER_BYTES_MAX
    for row in rows:
        written = _json([json_value(value, "T") for value in row])
        room -= len(written) + 1
        if len(taken) == rows_max or room < 0:
            return taken, True
        taken.append(written)
    return taken, False


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
