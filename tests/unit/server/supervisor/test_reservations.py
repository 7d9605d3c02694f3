"""Two connectors of a server share neither a lake nor a slot, however its server's address is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serving import CLASS

from tailrace.configuration.reading import Configuration, read
from tailrace.errors import DefiniteError
from tailrace.server.errors import RequestConflictError
from tailrace.server.supervisor.reservations import Reservation, Reservations


def configured(folder: Path, dsn: str, slot: str | None = "one_slot") -> Configuration:
    properties = {"connector.class": CLASS, "name": "x", "database.dsn": dsn, "lake.path": str(folder)}
    return read(properties if slot is None else properties | {"slot.name": slot})


def take_both(first: Configuration, second: Configuration) -> None:
    reservations = Reservations()
    reservations.take("first", Reservation.of("first", first))
    reservations.take("second", Reservation.of("second", second))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("host=db port=5433 dbname=a", "postgresql://u:p@DB:5433/b"),
        ("host=db", "postgresql://db/b"),
        ("postgresql://u@127.0.0.1:5432/a", "host=localhost dbname=b"),
        ("postgresql://u@[::1]:5432/a", "host=127.0.0.1 port=5432"),
        ("postgresql://h1:5432,h2:5433/a", "host=h2 port=5433"),
        ("host=h1,h2 dbname=a", "postgresql://h2/b"),
        (r"host='db' password='it\'s host=elsewhere'", "host=db"),
        ("host=name hostaddr=10.0.0.7", "host=10.0.0.7"),
        ("service=shop", "service=shop user=other"),
    ],
)
def test_one_slot_of_one_server_is_known_in_every_spelling(tmp_path: Path, one: str, other: str) -> None:
    found, known = configured(tmp_path / "a", one), configured(tmp_path / "b", other)
    with pytest.raises(RequestConflictError, match=r"slot\.name: connector first has the slot one_slot at "):
        take_both(known, found)
    with pytest.raises(RequestConflictError):
        take_both(found, known)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("host=db1 dbname=a", "host=db2 dbname=a"),
        ("host=db port=5432", "host=db port=5433"),
        ("postgresql://h1,h2/a", "postgresql://h3,h4/a"),
        ("host=/run/one", "host=/run/two"),
    ],
)
def test_slots_of_one_name_at_two_servers_are_two(tmp_path: Path, one: str, other: str) -> None:
    take_both(configured(tmp_path / "a", one), configured(tmp_path / "b", other))


@pytest.mark.parametrize("dsn", ["postgresql://u@h:port/a", "host=db port=many", "host='db", "mysql://h/a", "host"])
def test_an_address_that_makes_no_sense_is_told(tmp_path: Path, dsn: str) -> None:
    with pytest.raises(DefiniteError):
        Reservation.of("wrong", configured(tmp_path / "a", dsn))


def test_without_a_name_for_its_slot_a_source_makes_its_own(tmp_path: Path) -> None:
    take_both(configured(tmp_path / "a", "host=db", None), configured(tmp_path / "b", "host=db", None))


LAKES = [Path(each) for each in ("/a", "/a/b", "/a/b/c", "/a/bc", "/d", "/d/e")]
PLACES = st.builds(
    lambda lake, slots: (lake, frozenset(slots)), st.sampled_from(LAKES), st.sets(st.sampled_from("xyz"), max_size=2)
)


@given(st.lists(st.tuples(st.sampled_from("1234"), st.one_of(st.none(), PLACES))))
def test_a_place_is_free_exactly_when_no_one_else_has_a_part_of_it(
    orders: list[tuple[str, tuple[Path, frozenset[str]] | None]],
) -> None:
    reservations, model = Reservations(), dict[str, tuple[Path, frozenset[str]]]()
    for owner, wanted in orders:
        if wanted is None:
            reservations.leave(owner)
            model.pop(owner, None)
            continue
        is_free = not any(overlap(wanted, other) for name, other in model.items() if name != owner)
        if is_free:
            reservations.take(owner, Reservation(owner, *wanted, "slot.name"))
            model[owner] = wanted
        else:
            with pytest.raises(RequestConflictError):
                reservations.take(owner, Reservation(owner, *wanted, "slot.name"))


def overlap(one: tuple[Path, frozenset[str]], other: tuple[Path, frozenset[str]]) -> bool:
    below = one[0].is_relative_to(other[0]) or other[0].is_relative_to(one[0])
    return below or bool(one[1] & other[1])
