"""What a network and a store do to requests at their worst: a commit is made once, and its maker knows whose it is."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cutting_proxy import DONE, Fault, Request, cutting
from tests.s3 import S3Server

from tailrace.errors import TransientError
from tailrace.lake.delta.log.commit import Origin, commit
from tailrace.lake.delta.log.versions import CommitLog
from tailrace.lake.door import ConflictError
from tailrace.lake.stamp import Stamp
from tailrace.model.backoff import Backoff
from tailrace.model.position import SourcePosition
from tailrace.storage.bucket import Bucket
from tailrace.storage.bucket_client import StorePatience
from tailrace.storage.bucket_journal import BucketJournal

PATIENCE = StorePatience(Backoff(0.001, 0.01), tries=4, request_seconds=10.0)
FAULTS = [fault for fault in Fault if fault not in (Fault.NONE, Fault.SILENT)]


def first(count: int, fault: Fault) -> Callable[[Request], Fault]:
    """It happens to as many conditional puts."""
    left = [fault] * count

    def decide(request: Request) -> Fault:
        return left.pop() if request.is_conditional_put and left else Fault.NONE

    return decide


@pytest.fixture
def url(s3: S3Server) -> str:
    return f"{s3.make_bucket(uuid.uuid4().hex)}/lake/shop/orders"


def reached(
    s3: S3Server, url: str, options: dict[str, str], tmp_path: Path, patience: StorePatience = PATIENCE
) -> Bucket:
    return Bucket.of(url, {**s3.options, **options}, patience=patience, cache_root=tmp_path)


def stamp(seq: int) -> Stamp:
    return Stamp(SourcePosition(seq), 7, 1, seq)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_commit_that_met_a_fault_is_made_once(fault: Fault, s3: S3Server, url: str, tmp_path: Path) -> None:
    with cutting(s3.port, decide=first(1, fault)) as proxy:
        log = CommitLog(reached(s3, url, proxy.options, tmp_path))
        commit(log, 0, [], Origin("COPY", stamp(0)))
        assert proxy.count(fault) == 1
        proxy.let_late_ones_arrive()
        assert log.versions() == [0]
        assert log.stamp(0) == stamp(0)
        with pytest.raises(ConflictError, match="another writer made version 0"):
            commit(log, 0, [], Origin("COPY", stamp(1)))
        commit(log, 1, [], Origin("COPY", stamp(1)))
        assert (log.stamp(0), log.stamp(1)) == (stamp(0), stamp(1))


def test_a_commit_whose_answer_does_not_come_in_time_is_made_once(s3: S3Server, url: str, tmp_path: Path) -> None:
    brief = replace(PATIENCE, request_seconds=0.5)
    with cutting(s3.port, decide=first(1, Fault.SILENT)) as proxy:
        log = CommitLog(reached(s3, url, proxy.options, tmp_path, brief))
        commit(log, 0, [], Origin("COPY", stamp(0)))
        assert proxy.count(Fault.SILENT) == 1
        assert log.stamp(0) == stamp(0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_commit_that_is_never_answered_is_not_claimed(fault: Fault, s3: S3Server, url: str, tmp_path: Path) -> None:
    """Nor is it denied: it is there, or not, when the store can be asked again."""
    is_down = [False]

    def decide(request: Request) -> Fault:
        is_down[0] |= request.is_conditional_put
        return (fault if request.is_conditional_put else Fault.BUSY) if is_down[0] else Fault.NONE

    with cutting(s3.port, decide=decide) as proxy:
        log = CommitLog(reached(s3, url, proxy.options, tmp_path))
        with pytest.raises(TransientError) as raised:
            commit(log, 0, [], Origin("COPY", stamp(0)))
        assert not isinstance(raised.value, ConflictError)
        proxy.let_late_ones_arrive()
    direct = CommitLog(reached(s3, url, {}, tmp_path))
    assert direct.versions() == ([0] if fault in DONE else [])


def test_writers_behind_a_bad_network_make_each_version_once(s3: S3Server, url: str, tmp_path: Path) -> None:
    race(s3, url, tmp_path, seed=time.time_ns() % 1_000_000, rounds=6)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(40))
def test_writers_behind_a_bad_network_make_each_version_once_in_many_orders(
    seed: int, s3: S3Server, url: str, tmp_path: Path
) -> None:
    race(s3, url, tmp_path, seed=seed, rounds=30)


def race(s3: S3Server, url: str, tmp_path: Path, seed: int, rounds: int) -> None:
    """Four writers make versions one after the other. Each believes of a version that it made it exactly when its
    commit is there; of one that was never answered it believes nothing."""
    print(f"seed {seed}")
    chance = random.Random(seed)

    def decide(request: Request) -> Fault:
        return chance.choice([Fault.NONE, Fault.NONE, *FAULTS])

    def write(writer: int) -> dict[int, bool | None]:
        log, believed = CommitLog(reached(s3, url, proxy.options, tmp_path)), {}
        for version in range(rounds):
            try:
                commit(log, version, [], Origin("COPY", stamp(1000 * writer + version)))
                believed[version] = True
            except ConflictError:
                believed[version] = False
            except TransientError:
                believed[version] = None
        return believed

    with cutting(s3.port, decide=decide) as proxy:
        proxy.may_be_late.set()
        with ThreadPoolExecutor(4) as pool:
            beliefs = list(pool.map(write, range(4)))
    log = CommitLog(reached(s3, url, {}, tmp_path))
    for version in log.versions():
        found = log.stamp(version)
        assert found is not None
        assert found.seq is not None
        for writer, believed in enumerate(beliefs):
            assert believed[version] in (None, found.seq == 1000 * writer + version), f"seed {seed}"
    claimed = {version for believed in beliefs for version, is_ours in believed.items() if is_ours}
    assert claimed <= {*log.versions()}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_line_whose_answer_was_lost_is_in_the_journal_once(
    fault: Fault, s3: S3Server, url: str, tmp_path: Path
) -> None:
    puts = iter(range(100))

    def decide(request: Request) -> Fault:
        return fault if request.is_conditional_put and next(puts) % 2 == 0 else Fault.NONE

    with cutting(s3.port, decide=decide) as proxy:
        proxy.may_be_late.set()
        journal = BucketJournal(reached(s3, url, proxy.options, tmp_path), loose_min=3)
        for number in range(7):
            journal.append(f"line {number}")
        assert proxy.count(fault) >= 7
    assert BucketJournal(reached(s3, url, {}, tmp_path)).lines() == [f"line {number}" for number in range(7)]
