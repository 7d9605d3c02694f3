"""Lake types that are chosen on the command line."""

from __future__ import annotations

import pytest

from tailrace.cli.columns import choices
from tailrace.errors import DefiniteError


def test_a_choice_is_a_pattern_or_one_with_its_type() -> None:
    assert choices(["t.a"], ["public.t.*=38,10", "b=5,0"]) == [
        "t.a",
        "public.t.*=decimal(38,10)",
        "b=decimal(5,0)",
    ]
    assert choices(None, None) == []


@pytest.mark.parametrize("given", ["a", "a=", "a=38", "a=39,1", "a=5,6", "a=0,0", "=5,2", "a=5,-1", "a=x,y"])
def test_a_decimal_without_a_sound_precision_and_scale_is_refused(given: str) -> None:
    with pytest.raises(DefiniteError, match="has no precision and scale"):
        choices(None, [given])
