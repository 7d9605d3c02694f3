"""Whether a store keeps what a commit relies on: of several puts under the condition that there is no such object, one
succeeds.

Some stores ignore the condition, and some look first and write then. Neither says so, and a commit would be lost
without a word. So before a lake is begun there, threads put one new object at once, and then once more.
"""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from tailrace.errors import DefiniteError
from tailrace.storage.bucket import Bucket

WRITERS = 8
FOLDER = "_tailrace_probe"
_HINT = (
    "use a store whose PutObject meets If-None-Match exactly: S3 itself, Google's, Azure's, MinIO, or s3proxy do; for "
    "others see their release notes"
)


def require_conditional_puts(bucket: Bucket) -> None:
    """A definite error that says what the store did, unless it keeps the condition. Also one where the bucket cannot be
    written. Leaves nothing there. Takes three round trips."""
    name = f"{FOLDER}/{uuid.uuid4()}"
    bucket.require_reachable()
    try:
        _probe(bucket, name)
    finally:
        bucket.delete([name])


def _probe(bucket: Bucket, name: str) -> None:
    contents = [f"writer {number} {uuid.uuid4()}".encode() for number in range(WRITERS)]
    together = threading.Barrier(WRITERS)

    def put(content: bytes) -> bool:
        # Each thread has made its way to the store before any of them counts.
        together.wait()
        return bucket.put_new(name, content)

    with ThreadPoolExecutor(WRITERS) as pool:
        won = [content for content, is_new in zip(contents, pool.map(put, contents), strict=True) if is_new]
    found = bucket.get(name)
    if len(won) > 1:
        raise _refused(bucket, f"told {len(won)} of {WRITERS} writers that each had made the same new object")
    # Where it told no one, the answer to the one who made it was lost.
    if found not in contents or (won and found != won[0]):
        raise _refused(bucket, "told one writer that it had made an object, and has another one's")
    if bucket.put_new(name, b"later") or bucket.get(name) != found:
        raise _refused(bucket, "replaced an object that was to be put only if there was none")


def _refused(bucket: Bucket, what: str) -> DefiniteError:
    store = f" at {bucket.place.endpoint}" if bucket.place.endpoint else ""
    return DefiniteError(f"{bucket.address}: the store{store} {what}: commits would be lost there", _HINT)
