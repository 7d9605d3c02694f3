"""Which Python a Spark session is started with, however many threads start one."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tailrace.engine.spark.options import PYTHON_VARIABLE
from tailrace.engine.spark.session import _python_of
from tailrace.settings import LOCAL_SPARK


@pytest.mark.parametrize("before", [None, "/usr/bin/some-python"])
def test_threads_that_start_spark_at_once_leave_the_environment_as_it_was(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(PYTHON_VARIABLE, before)
    inside = Event()

    def start() -> str:
        with _python_of(LOCAL_SPARK):
            inside.set()
            return os.environ[PYTHON_VARIABLE]

    with ThreadPoolExecutor(1) as pool:
        with _python_of(LOCAL_SPARK):
            other = pool.submit(start)
            assert not inside.wait(0.2)
        assert other.result() == (before or sys.executable)
    assert os.environ.get(PYTHON_VARIABLE) == before
