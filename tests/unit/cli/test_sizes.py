"""A size is read as it is meant, or refused with one that would do."""

from __future__ import annotations

import pytest

from tailrace.cli.sizes import size_text, time_text
from tailrace.configuration.quantities import parse_size
from tailrace.errors import DefiniteError


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MB", 64 << 20), ("20GB", 20 << 30), ("1.5gib", 3 << 29), (" 2 TB ", 2 << 40), ("65536kB", 64 << 20)],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert parse_size("--log-quota", text, 1 << 20) == size


@pytest.mark.parametrize(
    "text", ["", "20", "GB", "-5GB", "1e3MB", "20 parsecs", "1,5GB", "0x10MB", "infMB", "20GBs", "٣MB"]
)
def test_nonsense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(DefiniteError, match="is not a size") as refused:
        parse_size("--log-quota", text, 1 << 20)
    assert refused.value.hint == "write a number and a unit: --log-quota 512MB"


@pytest.mark.parametrize("text", ["0MB", "63.9MB", "1kB"])
def test_too_little_is_refused_with_what_is_enough(text: str) -> None:
    with pytest.raises(DefiniteError, match="must be 64MB or more") as refused:
        parse_size("--log-quota", text, 64 << 20)
    assert refused.value.hint == "--log-quota 64MB"


def test_sizes_and_times_are_readable() -> None:
    assert [size_text(count) for count in (0, 1023, 1024, 1_610_612_736, 1 << 50)] == [
        "0 B",
        "1,023 B",
        "1.0 KiB",
        "1.5 GiB",
        "1,024.0 TiB",
    ]
    assert time_text(1_794_052_800_999_999) == "2026-11-07T12:00:00Z"
    assert time_text(1_794_052_800_000_000, "minutes") == "2026-11-07T12:00Z"
    assert time_text(1 << 62) == "4,611,686,018,427,387,904 µs since 1970"
