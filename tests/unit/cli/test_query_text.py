"""What `tailrace query` makes of values that are no plain ones."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from tailrace.cli.query import _plain


def test_arrays_and_maps_keep_their_form_and_their_elements_are_plain() -> None:
    assert _plain([1, None, b"\x00\xff", Decimal("1.50")]) == [1, None, "\\x00ff", "1.50"]
    assert _plain({"day": "infinity", "at": date(2024, 1, 1)}) == {"day": "infinity", "at": "2024-01-01"}
