"""Sizes and times as people read them."""

from __future__ import annotations

from tailrace.cli.sizes import size_text, time_text


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
