"""What the server and a process that answers a query send each other, as bytes.

The server sends the request and closes its side. One frame comes back: the answer, or why there is none.
"""

from __future__ import annotations

import json
import struct
import traceback
from dataclasses import asdict
from pathlib import Path

from tailrace.errors import TailraceError
from tailrace.lake.home import LakeHome
from tailrace.server.queries.answer import Query

FRAME = struct.Struct("<cQ")
"""Before what comes back: what it is, and its length."""
ANSWER, ERROR = b"a", b"e"


def framed(kind: bytes, body: bytes) -> bytes:
    return FRAME.pack(kind, len(body)) + body


def request(home: LakeHome, query: Query) -> bytes:
    return json.dumps({"home": str(home.lake), "query": asdict(query)}).encode()


def read_request(sent: bytes) -> tuple[LakeHome, Query]:
    asked = json.loads(sent)
    return LakeHome(Path(asked["home"])), Query(**asked["query"])


def told(error: BaseException) -> bytes:
    """An error, to be raised again by `raised`."""
    if isinstance(error, TailraceError):
        return json.dumps(error.to_fields(), default=str).encode()
    return json.dumps({"unexpected": "".join(traceback.format_exception(error))}).encode()


def raised(error: bytes) -> Exception:
    fields = json.loads(error)
    return RuntimeError(fields["unexpected"]) if "unexpected" in fields else TailraceError.from_fields(fields)
