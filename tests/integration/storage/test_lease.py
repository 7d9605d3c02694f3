"""Of several processes one holds the lease of a bucket, and none believes that it does when another one does."""

from __future__ import annotations

import json
import pickle
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cutting_proxy import Fault, Request, cutting
from tests.postgres import wait_until
from tests.s3 import S3Server

from tailrace.errors import DefiniteError, LeaseLostError, StoreError
from tailrace.model.backoff import Backoff
from tailrace.storage.bucket import Bucket
from tailrace.storage.bucket_client import StorePatience
from tailrace.storage.folder_lock import session_of
from tailrace.storage.lease import Lease, LeaseHeldError, steady_seconds

PATIENCE = StorePatience(Backoff(0.001, 0.01), tries=3, request_seconds=5.0)
NAME = "lease.json"
LONG = 60.0


@pytest.fixture
def url(s3: S3Server) -> str:
    return f"{s3.make_bucket(uuid.uuid4().hex)}/lake"


@pytest.fixture
def bucket(s3: S3Server, url: str) -> Bucket:
    return reached(s3, url, {})


def reached(s3: S3Server, url: str, options: dict[str, str]) -> Bucket:
    return Bucket.of(url, {**s3.options, **options, "lease_seconds": "1"}, patience=PATIENCE)


@contextmanager
def another_process(s3: S3Server, url: str, seconds: float, session: str = "") -> Iterator[subprocess.Popen[str]]:
    options = [f"{name}={value}" for name, value in s3.options.items()]
    command = [sys.executable, "-m", "tests.integration.storage.holding", url, str(seconds), session, *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], question: str = "") -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if question:
        process.stdin.write(f"{question}\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def test_of_many_who_want_a_lease_one_has_it_and_the_next_has_a_higher_number(bucket: Bucket) -> None:
    def take(_: int) -> Lease | str:
        try:
            return Lease(bucket, NAME, LONG, wait_seconds=0.0)
        except LeaseHeldError as error:
            return error.message

    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(take, range(6)))
    (lease,) = [each for each in taken if isinstance(each, Lease)]
    lease.require()
    refused = refusal(bucket)
    assert "in use by another tailrace (pid " in refused
    assert f"{bucket.address}/{NAME}" in refused
    lease.close()
    with pytest.raises(LeaseLostError, match="was given back"):
        lease.require()
    following = Lease(bucket, NAME, LONG, wait_seconds=0.0)
    assert following.number == lease.number + 1
    following.close()


def refusal(bucket: Bucket) -> str:
    with pytest.raises(LeaseHeldError) as raised:
        Lease(bucket, NAME, LONG, wait_seconds=0.0)
    return raised.value.message


def test_a_lease_is_renewed_for_as_long_as_it_is_held(bucket: Bucket) -> None:
    lease = Lease(bucket, NAME, 1.0)
    tags = {bucket.tag_of(NAME)}
    begun = time.monotonic()
    wait_until(lambda: tags.add(bucket.tag_of(NAME)) or time.monotonic() - begun > 2.5)
    lease.require()
    assert len(tags) > 5
    lease.close()


def test_a_lease_whose_holder_was_killed_can_be_taken_when_it_has_ended(s3: S3Server, url: str, bucket: Bucket) -> None:
    with another_process(s3, url, 1.0) as holder:
        assert said(holder) == "held 1"
        holder.kill()
        holder.wait()
    killed_at = time.monotonic()
    lease = Lease(bucket, NAME, 1.0)
    assert time.monotonic() - killed_at > 0.5
    assert lease.number == 2
    lease.close()


def test_a_holder_that_was_stopped_and_wakes_up_late_knows_that_it_holds_nothing(
    s3: S3Server, url: str, bucket: Bucket
) -> None:
    with another_process(s3, url, 1.0) as holder:
        assert said(holder) == "held 1"
        assert said(holder, "now?") == "held"
        holder.send_signal(signal.SIGSTOP)
        lease = Lease(bucket, NAME, LONG, wait_seconds=LONG)
        assert lease.number == 2
        holder.send_signal(signal.SIGCONT)
        assert "the lease" in said(holder, "now?")
        wait_until(lambda: said(holder, "and now?").startswith("lost"))
        lease.require()
        lease.close()


def test_a_lease_that_has_run_out_is_not_held_until_it_is_renewed(bucket: Bucket) -> None:
    ahead = [0.0]
    lease = Lease(bucket, NAME, 2.0, clock=lambda: steady_seconds() + ahead[0])
    lease.require()
    ahead[0] = LONG
    with pytest.raises(StoreError, match="has run out and is not renewed yet"):
        lease.require()
    wait_until(lambda: is_held(lease))
    assert "in use" in refusal(bucket)
    lease.close()


def test_a_lease_that_was_deleted_is_lost(bucket: Bucket) -> None:
    lease = Lease(bucket, NAME, 1.0)
    bucket.delete([NAME])
    with pytest.raises(LeaseLostError, match="was deleted"):
        wait_until(lambda: not is_held(lease))
    lease.close()
    assert bucket.look(NAME) is None


def is_held(lease: Lease) -> bool:
    try:
        lease.require()
    except StoreError:
        return False
    return True


def test_no_one_waits_for_a_holder_that_is_alive(bucket: Bucket) -> None:
    holder = Lease(bucket, NAME, 2.0)
    begun = time.monotonic()
    with pytest.raises(LeaseHeldError, match="in use by another tailrace"):
        Lease(bucket, NAME, 2.0, wait_seconds=LONG)
    assert time.monotonic() - begun < LONG / 2
    holder.require()
    holder.close()


def test_a_home_whose_holder_was_killed_has_the_bucket_again_at_once_and_a_copy_of_it_has_not(
    s3: S3Server, url: str, bucket: Bucket, tmp_path: Path
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    home.mkdir()
    with another_process(s3, url, LONG, session_of(home)) as holder:
        assert said(holder) == "held 1"
        holder.kill()
        holder.wait()
    shutil.copytree(home, copy)
    assert session_of(copy) != session_of(home)
    with pytest.raises(LeaseHeldError):
        Lease(bucket, NAME, LONG, session=session_of(copy), wait_seconds=0.0)
    lease = Lease(bucket, NAME, LONG, session=session_of(home), wait_seconds=0.0)
    lease.require()
    assert lease.number == 1
    lease.close()


def test_what_a_bucket_changes_is_refused_once_another_has_it_and_in_its_folders_too(
    bucket: Bucket, tmp_path: Path
) -> None:
    folder, tasks = bucket.at("shop/orders"), pickle.loads(pickle.dumps(bucket))
    bucket.put("theirs", b"")
    with bucket.hold(NAME, tmp_path):
        folder.put("one", b"")
        bucket.put(NAME, json.dumps({**json.loads(bucket.get(NAME)), "session": "another", "number": 2}).encode())
        changes: list[Callable[[], object]] = [
            lambda: folder.put("one", b""),
            lambda: folder.put_new("two", b""),
            lambda: bucket.put_over("two", b"", None),
            lambda: bucket.delete(["theirs"]),
            lambda: folder.journal("cuts").append("a line"),
        ]
        wait_until(lambda: not is_allowed(changes[0]))
        assert not any(map(is_allowed, changes))
        tasks.put("rows", b"")
        assert bucket.get("theirs") == b""
        assert folder.names() == ["one"]
    assert not any(map(is_allowed, changes)), "nor when it is over"
    assert json.loads(bucket.get(NAME))["session"] == "another"


def is_allowed(change: Callable[[], object]) -> bool:
    try:
        change()
    except LeaseLostError:
        return False
    return True


def test_a_holder_that_cannot_reach_the_store_has_lost_the_lease_before_another_one_has_it(
    s3: S3Server, url: str, bucket: Bucket
) -> None:
    is_down = [False]
    with cutting(s3.port, decide=lambda request: Fault.BEFORE if is_down[0] else Fault.NONE) as proxy:
        cut_off = Lease(reached(s3, url, proxy.options), NAME, 1.0)
        cut_off.require()
        is_down[0] = True
        lease = Lease(bucket, NAME, LONG, wait_seconds=LONG)
        with pytest.raises(StoreError, match="has run out and is not renewed yet"):
            cut_off.require()
        is_down[0] = False
        with pytest.raises(LeaseLostError, match="was taken by another tailrace"):
            wait_until(lambda: is_held(cut_off))
        cut_off.close()
        lease.require()
        assert lease.number == 2
        lease.close()


@pytest.mark.parametrize("fault", [Fault.LATE, Fault.AFTER, Fault.SILENT])
def test_a_renewal_whose_answer_is_lost_does_not_end_a_lease(fault: Fault, s3: S3Server, url: str) -> None:
    puts = iter(range(1000))

    def decide(request: Request) -> Fault:
        return fault if request.is_conditional_put and next(puts) % 3 == 1 else Fault.NONE

    with cutting(s3.port, decide=decide) as proxy:
        proxy.may_be_late.set()
        lease = Lease(reached(s3, url, proxy.options), NAME, 1.5)
        wait_until(lambda: proxy.count(fault) > 1)
        lease.require()
        lease.close()


def test_a_renewal_that_comes_after_it_was_given_up_does_not_end_a_lease(s3: S3Server, url: str) -> None:
    is_bad = [False]

    def decide(request: Request) -> Fault:
        if not is_bad[0]:
            return Fault.NONE
        return Fault.LATE if request.is_conditional_put else Fault.BUSY

    with cutting(s3.port, decide=decide) as proxy:
        bucket = reached(s3, url, proxy.options)
        lease = Lease(bucket, NAME, 3.0)
        is_bad[0] = True
        wait_until(lambda: proxy.count(Fault.BUSY) >= PATIENCE.tries)
        is_bad[0] = False
        proxy.let_late_ones_arrive()
        tags = {bucket.tag_of(NAME)}
        wait_until(lambda: tags.add(bucket.tag_of(NAME)) or len(tags) > 2, 10)
        lease.require()
        lease.close()


def test_a_lease_that_is_damaged_is_named(bucket: Bucket) -> None:
    bucket.put(NAME, b"{}")
    with pytest.raises(DefiniteError, match=r"lake/lease\.json is damaged"):
        Lease(bucket, NAME, LONG, wait_seconds=0.0)
