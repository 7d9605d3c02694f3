"""Errors on their way from one process to another: sent there, raised here."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator

import pytest

from tailrace import errors, hidden
from tailrace.errors import DefiniteError, PreflightError, TailraceError, TextKeyError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, TailraceError)]
Journey = Callable[[TailraceError], TailraceError]


def pickled(error: TailraceError) -> TailraceError:
    arrived = pickle.loads(pickle.dumps(error))
    assert isinstance(arrived, TailraceError)
    return arrived


def as_json(error: TailraceError) -> TailraceError:
    return TailraceError.from_fields(json.loads(json.dumps(error.to_fields())))


@pytest.fixture(params=[pickled, as_json])
def journey(request: pytest.FixtureRequest) -> Journey:
    found: Journey = request.param
    return found


@pytest.fixture
def secret() -> Iterator[str]:
    yield "correct horse"
    hidden.forget()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not PreflightError])
def test_an_error_arrives_as_it_was_raised(kind: type[TailraceError], journey: Journey) -> None:
    arrived = journey(kind("it broke", "mend it", "public.t"))
    assert type(arrived) is kind
    assert (arrived.message, arrived.hint, arrived.table) == ("it broke", "mend it", "public.t")
    assert str(arrived) == "it broke"
    assert arrived.__notes__ == ["hint: mend it"]


def test_an_error_arrives_with_all_that_it_knows(journey: Journey) -> None:
    arrived = journey(TextKeyError.found("public.t", "the value 'x'", 7, [2, "day"]))
    assert isinstance(arrived, TextKeyError)
    assert (arrived.relation, arrived.columns) == (7, [2, "day"])
    preflight = journey(PreflightError([("no slot", "make one"), ("no right", None)]))
    assert isinstance(preflight, PreflightError)
    assert list(map(tuple, preflight.problems)) == [("no slot", "make one"), ("no right", None)]


def test_an_error_without_a_hint_arrives_without_one(journey: Journey) -> None:
    arrived = journey(DefiniteError("it broke"))
    assert (arrived.hint, arrived.table, getattr(arrived, "__notes__", [])) == (None, None, [])


def test_an_error_of_a_kind_that_is_not_loaded_here_is_of_the_nearest_one_that_is() -> None:
    fields = DefiniteError("it broke").to_fields()
    fields["kinds"].insert(0, "tailrace.elsewhere.OtherError")
    assert type(TailraceError.from_fields(fields)) is DefiniteError


def test_what_is_hidden_here_is_masked_in_an_error_from_a_process_that_did_not_know_it(secret: str) -> None:
    fields, sent = DefiniteError(f"no {secret}", f"try {secret}").to_fields(), pickle.dumps(DefiniteError(secret))
    hidden.hide(secret)
    arrived = TailraceError.from_fields(fields)
    assert (arrived.message, arrived.hint) == ("no ********", "try ********")
    assert arrived.__notes__ == ["hint: try ********"]
    assert str(pickle.loads(sent)) == "********"
