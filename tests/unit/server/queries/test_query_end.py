"""The process that answers queries lives no longer than the server, however that ends."""

from __future__ import annotations

import subprocess
import sys

import psutil
from tests.postgres import wait_until

SERVER = """
import psutil, sys
from tailrace.server.queries._process import QueryProcess

process = QueryProcess()
waiting = [process.begin(300.0) for _ in range(2)]
while len(found := psutil.Process().children(recursive=True)) < 3:
    pass
print(*(each.pid for each in found), flush=True)
sys.stdin.read()
process.close()
"""


def started() -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A process that has two queries under way, and the three processes for them."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=-1, stdout=-1, text=True)
    assert server.stdout is not None
    return server, [psutil.Process(int(pid)) for pid in server.stdout.readline().split()]


def test_no_query_outlives_a_server_that_is_killed() -> None:
    server, found = started()
    for fork in found:
        if fork.ppid() != server.pid:
            # As one that is busy: it does not notice by itself.
            fork.suspend()
    server.kill()
    server.communicate()
    wait_until(lambda: not any(is_alive(each) for each in found), 30)


def test_no_query_outlives_a_server_that_ends() -> None:
    server, found = started()
    server.communicate("")
    assert server.returncode == 0
    assert not is_alive(found[0])
    wait_until(lambda: not any(is_alive(each) for each in found), 30)


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
