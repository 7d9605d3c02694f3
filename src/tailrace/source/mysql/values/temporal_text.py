"""Dates and times as the server writes them, from their parts."""

from __future__ import annotations

Clock = tuple[int, int, int]
"""Hours, minutes, seconds."""


def date_text(year: int, month: int, day: int) -> str:
    return f"{year:04}-{month:02}-{day:02}"


def datetime_text(date: str, clock: Clock, microseconds: int, digits: int) -> str:
    return f"{date} {clock_text(clock, microseconds, digits)}"


def clock_text(clock: Clock, microseconds: int, digits: int) -> str:
    """With so many digits of the fraction."""
    fraction = f".{microseconds:06}"[: digits + 1] if digits else ""
    return f"{clock[0]:02}:{clock[1]:02}:{clock[2]:02}{fraction}"


def time_text(is_negative: bool, clock: Clock, microseconds: int, digits: int) -> str:
    return ("-" if is_negative else "") + clock_text(clock, microseconds, digits)
