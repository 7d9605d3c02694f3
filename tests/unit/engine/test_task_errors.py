"""Why a job of Spark's failed."""

from __future__ import annotations

import pytest

from tailrace.engine.spark.errors import reason_of

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
