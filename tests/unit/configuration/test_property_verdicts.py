"""Every property has a verdict, and the verdict is what happens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tailrace.configuration.properties import Property, Type, Verdict, all_properties, nearest, property_of
from tailrace.configuration.reading import ConfigurationError, check, read

DEBEZIUM = (Path(__file__).parent / "debezium-3.6.3.txt").read_text(encoding="utf-8").split()
"""What Debezium's connector for Postgres and Kafka Connect 4.3 declare, families with an example."""

PROPERTIES = all_properties()
SMALLEST = {
    "name": "shop",
    "database.hostname": "127.0.0.1",
    "database.user": "ann",
    "database.dbname": "shop",
    "lake.path": "lake",
}
SUPPORTED = [each for each in PROPERTIES if each.verdict is Verdict.SUPPORTED]
IGNORED = [each for each in PROPERTIES if each.verdict is Verdict.IGNORED]
REFUSED = [each for each in PROPERTIES if each.verdict is Verdict.REFUSED]
NEEDS_MORE = {
    "lake.home": {"lake.path": "s3://bucket/shop"},
    "lake.storage.*": {"lake.path": "s3://bucket/shop"},
    "incremental.snapshot.watermarking.strategy": {"signal.data.collection": "a.b"},
    "signal.enabled.channels": {"signal.file": "signals"},
    "publication.autocreate.mode": {"publication.name": "p"},
}


def key_of(each: Property) -> str:
    return each.name.replace("*", "spark.x" if each.name.startswith("spark.") else "x")


def named(properties: list[Property]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("each", properties, ids=lambda each: each.name)


def problems(properties: Mapping[str, str]) -> Mapping[str, list[str]]:
    try:
        read(properties)
    except ConfigurationError as error:
        return error.problems
    return {}


def test_every_property_of_debezium_is_known() -> None:
    assert len(DEBEZIUM) > 150
    assert [name for name in DEBEZIUM if property_of(name) is None] == []


def test_no_property_is_there_twice_and_a_family_hides_no_other() -> None:
    names = [each.name for each in PROPERTIES]
    assert sorted(set(names)) == sorted(names)
    assert [each.name for each in PROPERTIES if property_of(key_of(each)) != each] == []


@named(list(PROPERTIES))
def test_a_property_explains_itself(each: Property) -> None:
    assert each.documentation.endswith(".")
    assert each.documentation[0].isupper() or each.documentation[0] == "`"
    assert each.group
    assert bool(each.reason) == (each.verdict is not Verdict.SUPPORTED)
    assert not each.reason.endswith(".")
    assert not (each.harmless and each.verdict is Verdict.SUPPORTED)
    assert each.type is not Type.BOOLEAN or set(each.harmless) < {"true", "false"}


@named(IGNORED)
def test_what_is_ignored_is_warned_of_by_name_and_reason(each: Property) -> None:
    configuration = read(SMALLEST | {key_of(each): "7"})
    assert configuration.warnings == (f"{key_of(each)}: {each.reason}",)
    assert configuration.settings == read(SMALLEST).settings


@named(REFUSED)
def test_what_is_refused_is_refused_with_its_reason(each: Property) -> None:
    assert problems(SMALLEST | {key_of(each): "7"}) == {key_of(each): [each.reason]}


@named([*IGNORED, *REFUSED])
def test_a_value_that_asks_for_what_happens_anyway_is_accepted_without_a_word(each: Property) -> None:
    for value in ("", *each.harmless, *(value.upper() for value in each.harmless)):
        configuration = read(SMALLEST | {key_of(each): value})
        assert configuration.warnings == ()
        assert configuration.settings == read(SMALLEST).settings


@named([each for each in SUPPORTED if each.values])
def test_the_values_of_a_supported_property_are_those_that_are_listed(each: Property) -> None:
    for value in each.values:
        assert problems(SMALLEST | NEEDS_MORE.get(each.name, {}) | {each.name: value}) == {}
    (problem,) = problems(SMALLEST | {each.name: "other"})[each.name]
    assert problem == f"'other' is not known; known are {', '.join(each.values)}"


@named([each for each in SUPPORTED if each.refused_values])
def test_a_value_that_is_refused_says_why(each: Property) -> None:
    for value, reason in each.refused_values.items():
        assert problems(SMALLEST | {each.name: value})[each.name] == [reason]


@named([each for each in SUPPORTED if each.default is not None])
def test_a_default_that_is_given_changes_nothing(each: Property) -> None:
    configuration = read(SMALLEST | {each.name: each.default or ""})
    assert configuration.settings == read(SMALLEST).settings
    assert configuration.warnings == ()


@named([each for each in SUPPORTED if each.type is Type.INT])
def test_a_number_must_be_one(each: Property) -> None:
    for wrong, reason in (("many", "is not a whole number"), ("1.5", "is not a whole number"), ("0", "is too small")):
        (problem,) = problems(SMALLEST | {each.name: wrong})[each.name]
        assert reason in problem
    assert "is too large" in problems(SMALLEST | {each.name: "2147483648"})[each.name][0]


@named([each for each in SUPPORTED if not each.is_family])
def test_a_supported_property_that_is_empty_counts_as_not_given(each: Property) -> None:
    without = {key: value for key, value in SMALLEST.items() if key != each.name}
    assert problems(without | {each.name: "  "}) == problems(without)


def test_an_unknown_key_is_refused_with_the_one_that_was_meant() -> None:
    assert problems(SMALLEST | {"tabel.include.list": "a"}) == {
        "tabel.include.list": ["unknown: did you mean table.include.list?"]
    }
    assert problems(SMALLEST | {"colour": "red"}) == {"colour": ["unknown"]}
    assert nearest("database.hostnme") == "database.hostname"


def test_what_belongs_to_a_converter_of_your_own_is_not_unknown() -> None:
    properties = SMALLEST | {"converters": "isbn", "isbn.type": "com.example.Isbn", "isdn.type": "com.example.Isbn"}
    assert sorted(problems(properties)) == ["converters", "isdn.type"]


def test_a_check_has_every_key_that_there_is_and_every_other_that_is_given() -> None:
    given = {"name": "shop", "transforms.unwrap.type": "x", "colour": "red", "snapshot.mode": "always"}
    checks = {each.name: each for each in check(given)}
    assert set(checks) == {each.name for each in PROPERTIES if not each.is_family} | set(given)
    assert checks["colour"].property is None
    assert checks["colour"].errors == ("unknown",)
    assert checks["transforms.unwrap.type"].warnings
    assert checks["snapshot.mode"].errors
    assert "when_needed" in checks["snapshot.mode"].recommended_values
    assert checks["database.hostname"].errors == ("required (or set database.dsn)",)
    assert (checks["database.port"].value, checks["database.port"].is_given) == ("5432", False)
    assert checks["lake.path"].errors == ()
