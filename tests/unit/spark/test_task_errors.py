"""Errors on their way from an executor."""

from __future__ import annotations

import pytest

from tailrace.errors import TextKeyError
from tailrace.spark.task_errors import errors_received, errors_sent


def test_an_error_arrives_as_it_was_raised_with_all_that_it_knows() -> None:
    with pytest.raises(TextKeyError) as caught, errors_received(), errors_sent():
        raise TextKeyError.found("public.t", "the value 'x'", 7, [2, "day"])
    assert (caught.value.message, caught.value.table) == ("public.t: the value 'x'", "public.t")
    assert (caught.value.relation, list(caught.value.columns)) == (7, [2, "day"])
