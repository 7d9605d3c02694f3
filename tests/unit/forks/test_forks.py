"""Processes that are forked from one that is warm: how each ended is told, whatever becomes of the one it came from."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator

import psutil
import pytest

from tailrace.forks.forks import UNKNOWN, Fork, Forks


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def forks() -> Iterator[Forks]:
    forks = Forks("tests.unit.forks.waiting_server", environment)
    yield forks
    forks.end()


def started(forks: Forks, needs: str = "", **more: float) -> tuple[socket.socket, Fork]:
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    with theirs:
        fork = forks.start(needs, [theirs.fileno()], **more)
    ours.sendall(b"hello")
    assert ours.recv(100) == b"hello"
    return ours, fork


def test_a_fork_tells_its_exit_code_when_it_has_ended(forks: Forks) -> None:
    connection, fork = started(forks)
    assert fork.poll() is None
    with connection:
        connection.sendall(b"7")
        assert (fork.wait(20), fork.is_late) == (7, False)


def test_forks_have_one_parent_and_hold_nothing_of_each_other_open(forks: Forks) -> None:
    (one, first), (other, second) = started(forks), started(forks)
    with one, other:
        assert psutil.Process(first.pid).ppid() == psutil.Process(second.pid).ppid() != os.getpid()
        one.shutdown(socket.SHUT_WR)
        assert first.wait(20) == 0
        assert one.recv(100) == b""
        second.kill()
        assert second.wait(20) == -signal.SIGKILL


def test_a_fork_is_killed_when_its_time_is_over(forks: Forks) -> None:
    forks.prepare("")
    connection, fork = started(forks, seconds_max=0.5)
    with connection:
        assert (fork.wait(20), fork.is_late) == (-signal.SIGKILL, True)


@pytest.mark.parametrize("needs", ["killed", "left"])
def test_after_a_kill_of_the_fork_server_another_one_forks(forks: Forks, needs: str) -> None:
    """Whether forks of the first live on is for the fork server to say."""
    connection, fork = started(forks, needs)
    with connection:
        process = psutil.Process(fork.pid)
        psutil.Process(process.ppid()).kill()
        assert fork.wait(20) == UNKNOWN
        if needs == "left":
            connection.sendall(b"I live")
            assert connection.recv(100) == b"I live"
            connection.sendall(b"0")
        process.wait(20)
    again, another = started(forks, needs)
    with again, another:
        assert another.poll() is None
