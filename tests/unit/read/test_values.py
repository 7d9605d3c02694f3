"""What becomes of values that are no plain ones."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tailrace.read.values import json_value, plain

NOON = datetime(2024, 1, 1, 12, 0, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x00\xff", "\\x00ff"),
        (bytearray(b"a"), "\\x61"),
        (Decimal("1.50"), "1.50"),
        (date(2024, 1, 1), "2024-01-01"),
        (time(12, 30), "12:30:00"),
        (NOON, "2024-01-01 12:00:00.000005+00:00"),
        (timedelta(days=1), "1 day, 0:00:00"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    ],
)
def test_what_is_no_number_or_text_is_its_text(value: Any, text: str) -> None:
    assert plain(value) == json_value(value) == text


@pytest.mark.parametrize("value", [None, True, 7, 1.5, "é"])
def test_numbers_texts_and_null_stay_as_they_are(value: Any) -> None:
    assert plain(value) is value
    assert json_value(value) is value


def test_arrays_and_maps_keep_their_form_and_their_elements_are_plain() -> None:
    assert plain([1, None, b"\x00\xff", Decimal("1.50")]) == [1, None, "\\x00ff", "1.50"]
    assert plain({"day": "infinity", "at": date(2024, 1, 1)}) == {"day": "infinity", "at": "2024-01-01"}
    assert plain((1, [NOON])) == [1, ["2024-01-01 12:00:00.000005+00:00"]]


def test_json_has_only_what_it_knows() -> None:
    value = [float("nan"), (float("-inf"), 1.5), {date(2024, 1, 1): b"\x00", 7: [float("inf")]}]
    found = json_value(value)
    assert found == ["nan", ["-inf", 1.5], {"2024-01-01": "\\x00", "7": ["inf"]}]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_asker_chooses_what_stands_between_a_day_and_its_time_however_deep() -> None:
    assert json_value([{"at": (NOON,)}], "T") == [{"at": ["2024-01-01T12:00:00.000005+00:00"]}]
    assert plain([{"at": (NOON,)}], "T") == [{"at": ["2024-01-01T12:00:00.000005+00:00"]}]
