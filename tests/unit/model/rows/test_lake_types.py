"""Lake types and the Arrow types that carry them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tailrace.model.rows.lake_types import arrow_type


@pytest.mark.parametrize(
    ("lake", "arrow"),
    [
        ("decimal(12,2)", pa.decimal128(12, 2)),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("binary", pa.binary()),
        ("array<decimal(12,2)>", pa.list_(pa.decimal128(12, 2))),
        ("map<string,string>", pa.map_(pa.string(), pa.string())),
    ],
)
def test_each_lake_type_has_an_arrow_type(lake: str, arrow: object) -> None:
    assert arrow_type(lake) == arrow
