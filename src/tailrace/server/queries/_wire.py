"""What the server and the process that answers queries send each other, as bytes.

With each connection come the seconds that its query may take. On the connection the request is sent, and its end is the
end of what the server sends. One byte comes back when there is a process for it, and then one frame: the answer, why
there is none, or how the process ended without either.
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

SECONDS = struct.Struct("<d")
FRAME = struct.Struct("<cQ")
"""Before what comes back: what it is, and its length."""
BEGUN, ANSWER, ERROR, ENDED = b"b", b"a", b"e", b"x"


def framed(kind: bytes, body: bytes) -> bytes:
    return FRAME.pack(kind, len(body)) + body


def request(home: LakeHome, query: Query) -> bytes:
    return json.dumps({"home": str(home.path), "query": asdict(query)}).encode()


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
