"""Errors on their way from a task: pickled there, raised here."""

from __future__ import annotations

import pickle

import pytest

from tailrace import errors
from tailrace.engine.spark.errors import reason_of
from tailrace.errors import PreflightError, TailraceError, TextKeyError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TailraceError)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not PreflightError])
def test_an_error_arrives_as_it_was_raised(kind: type[TailraceError]) -> None:
    arrived = pickle.loads(pickle.dumps(kind("it broke", "mend it", "public.t")))
    assert type(arrived) is kind
    assert (arrived.message, arrived.hint, arrived.table, str(arrived)) == (
        "it broke",
        "mend it",
        "public.t",
        "it broke",
    )
    assert arrived.__notes__ == ["hint: mend it"]


def test_an_error_arrives_with_all_that_it_knows() -> None:
    arrived = pickle.loads(pickle.dumps(TextKeyError.found("public.t", "the value 'x'", 7, [2, "day"])))
    assert (arrived.relation, arrived.columns) == (7, [2, "day"])
    preflight = pickle.loads(pickle.dumps(PreflightError([("no slot", "make one"), ("no right", None)])))
    assert preflight.problems == [("no slot", "make one"), ("no right", None)]


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
