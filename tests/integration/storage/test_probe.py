"""A store that does not meet the condition of a put is refused before a lake is begun there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cutting_proxy import Fault, Request, cutting
from tests.s3 import S3Server, s3_server

from tailrace.errors import DefiniteError
from tailrace.model.backoff import Backoff
from tailrace.storage.bucket import Bucket
from tailrace.storage.bucket_client import StorePatience
from tailrace.storage.probe import require_conditional_puts

PATIENCE = StorePatience(Backoff(0.001, 0.01), tries=6, request_seconds=10.0)


@pytest.fixture(scope="module")
def open_s3() -> Iterator[S3Server]:
    with s3_server(is_open=True) as server:
        yield server


@pytest.fixture
def url(s3: S3Server) -> str:
    return f"{s3.make_bucket(uuid.uuid4().hex)}/lake"


def reached(s3: S3Server, url: str, options: dict[str, str], tmp_path: Path) -> Bucket:
    return Bucket.of(url, {**s3.options, **options}, patience=PATIENCE, cache_root=tmp_path)


def test_a_store_that_meets_the_condition_is_taken_and_nothing_is_left(s3: S3Server, url: str, tmp_path: Path) -> None:
    bucket = reached(s3, url, {}, tmp_path)
    for _ in range(3):
        require_conditional_puts(bucket)
    assert bucket.names() == []


def test_a_store_that_ignores_the_condition_is_refused_by_its_address(open_s3: S3Server, tmp_path: Path) -> None:
    url = f"{open_s3.make_bucket(uuid.uuid4().hex)}/lake"
    with cutting(open_s3.port, stripped=frozenset({"if-none-match"})) as proxy:
        bucket = reached(open_s3, url, proxy.options, tmp_path)
        with pytest.raises(DefiniteError, match="told 8 of 8 writers that each had made the same new object") as raised:
            require_conditional_puts(bucket)
        assert f"http://127.0.0.1:{proxy.port}" in raised.value.message
        assert url in raised.value.message
        assert bucket.names() == []


def test_a_store_that_looks_first_and_writes_then_is_refused(open_s3: S3Server, tmp_path: Path) -> None:
    """It meets the condition only for those who come one after the other."""
    url = f"{open_s3.make_bucket(uuid.uuid4().hex)}/lake"
    with cutting(open_s3.port, races=True) as proxy:
        bucket = reached(open_s3, url, proxy.options, tmp_path)
        assert bucket.put_new("one", b"1")
        assert not bucket.put_new("one", b"2")
        with pytest.raises(DefiniteError, match="writers that each had made the same new object"):
            require_conditional_puts(bucket)


def test_a_store_that_keeps_the_condition_only_of_the_first_puts_is_refused(open_s3: S3Server, tmp_path: Path) -> None:
    url = f"{open_s3.make_bucket(uuid.uuid4().hex)}/lake"
    with cutting(open_s3.port) as proxy:
        puts = iter(range(100))

        def decide(request: Request) -> Fault:
            if request.is_conditional_put and next(puts) == 8:
                proxy.stripped = frozenset({"if-none-match"})
            return Fault.NONE

        proxy.decide = decide
        with pytest.raises(DefiniteError, match="replaced an object that was to be put only if there was none"):
            require_conditional_puts(reached(open_s3, url, proxy.options, tmp_path))


@pytest.mark.parametrize("fault", [Fault.AFTER, Fault.DONE_AND_INTERNAL, Fault.CONFLICT, Fault.BUSY])
def test_a_bad_network_does_not_make_a_good_store_a_bad_one(
    fault: Fault, s3: S3Server, url: str, tmp_path: Path
) -> None:
    puts = iter(range(1000))

    def decide(request: Request) -> Fault:
        return fault if request.is_conditional_put and next(puts) % 3 == 0 else Fault.NONE

    with cutting(s3.port, decide=decide) as proxy:
        require_conditional_puts(reached(s3, url, proxy.options, tmp_path))
        assert proxy.count(fault)
