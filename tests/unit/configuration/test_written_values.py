"""A size or a time is read as it is meant, or not at all."""

from __future__ import annotations

import pytest

from tailrace.configuration.values import parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MB", 64 << 20), ("20GB", 20 << 30), ("1.5gib", 3 << 29), (" 2 TB ", 2 << 40), ("65536kB", 64 << 20)],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", [*("", "20", "GB", "-5GB", "1e3MB", "20 parsecs", "1,5GB", "0x10MB", "infMB", "٣MB"), "20GBs"]
)
def test_nonsense_is_no_size(text: str) -> None:
    assert parse_size(text) is None


@pytest.mark.parametrize(("text", "seconds"), [("7d", 604800.0), ("1.5h", 5400.0), (" 30 MIN ", 1800.0), ("0s", 0.0)])
def test_a_time_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "7 days", "1w", "٣d"])
def test_nonsense_is_no_time(text: str) -> None:
    assert parse_duration(text) is None
