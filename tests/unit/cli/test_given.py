"""What a person gives as options is what a configuration with the same properties says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.cli.given import Given
from tailrace.configuration.options import all_options, options_of
from tailrace.configuration.properties import property_of
from tailrace.settings import ConnectorSettings, SnapshotMode, SparkSettings

DSN = "postgresql://ann:p${env:X}$${@127.0.0.1/shop"
LAKE = Path(" lake ")


def given(**values: Any) -> Given:
    options = {option.name.replace("-", "_"): option for option in options_of("sync")}
    return Given("sync", {options[name]: value for name, value in values.items()})


def test_an_option_sets_a_property_that_there_is() -> None:
    assert [option.name for option in all_options() if property_of(option.key) is None] == []


def test_nothing_given_means_the_defaults() -> None:
    found = given().configuration(DSN, LAKE)
    assert found.settings == ConnectorSettings(LAKE)
    assert found.warnings == ()


def test_a_connection_string_and_a_folder_are_taken_as_they_stand() -> None:
    """Nothing of them is a reference to a secret."""
    found = given(signal_file="${env:X}").configuration(DSN, LAKE)
    assert (found.dsn, found.settings.lake, found.settings.signal_file) == (DSN, LAKE, Path("${env:X}"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"tables": ["public.*", "a,b"], "exclude": ["x"]}, {"tables": ("public.*", "a,b"), "exclude": ("x",)}),
        ({"publish_every": 0.25}, {"publish_every_seconds": 0.25}),
        ({"snapshot_mode": "initial_only"}, {"snapshot_mode": SnapshotMode.INITIAL_ONLY, "once": True}),
        ({"chunk_rows": 7, "readers": 3}, {"window_rows": 7, "readers_max": 3}),
        (
            {"spark_conf": ["spark.a=b=c", "spark.d="], "spark_ui": True},
            {"spark": SparkSettings(conf=(("spark.a", "b=c"), ("spark.d", "")), ui=True)},
        ),
    ],
)
def test_an_option_sets_what_it_names(values: dict[str, Any], expected: dict[str, Any]) -> None:
    assert given(**values).configuration(DSN, LAKE).settings == ConnectorSettings(LAKE, **expected)


def test_the_source_gets_its_options() -> None:
    found = given(
        append_only=["public.a"], as_text=["t.a"], as_decimal=["public.t.*=38,10"], failover_slot=True
    ).configuration(DSN)
    assert found.source_options["append_only"] == ["public.a"]
    assert found.source_options["as_text"] == ["t.a", "public.t.*=decimal(38,10)"]
    assert found.source_options["stream"]["failover"] is True
