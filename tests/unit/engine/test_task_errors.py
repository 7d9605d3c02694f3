"""Why a job of Spark's failed, and whether Spark itself has died."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from tailrace.engine.spark.errors import is_spark_gone, reason_of

TOLD = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times
{middle}
\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:1)
"""
CHAINED = """Traceback (most recent call last):
  File "a.py", line 1, in work
KeyError: 'k'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in work
    raise ValueError("odd")
ValueError: odd
"""


@pytest.mark.parametrize(
    ("middle", "reason"),
    [
        (CHAINED, "ValueError: odd"),
        ("java.lang.X: Python worker exited unexpectedly (crashed)", "Python worker exited unexpectedly (crashed)"),
        ("", "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times"),
    ],
)
def test_the_reason_of_a_failed_job_is_one_line_that_a_person_understands(middle: str, reason: str) -> None:
    assert reason_of(RuntimeError(TOLD.format(middle=middle))) == reason


@pytest.mark.parametrize(
    ("error", "is_gone"),
    [
        (Py4JNetworkError("Answer from Java side is empty"), True),
        (Py4JError("An error occurred while calling o67.getLocalProperty"), True),
        (
            Py4JError("An error occurred while calling o67.no. Trace:\npy4j.Py4JException: Method no([]) is not there"),
            False,
        ),
        (ConnectionRefusedError(111, "Connection refused"), True),
        (ValueError("odd"), False),
    ],
)
def test_a_call_that_the_jvm_did_not_answer_means_that_spark_has_died(error: Exception, is_gone: bool) -> None:
    assert is_spark_gone(error) == is_gone
