"""What the connector of one lake is called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.model.lake_address import BucketLake
from tailrace.server.lake_host.host import connector_name


@pytest.mark.parametrize(
    ("lake", "name"),
    [
        (Path("/data/shop"), "shop"),
        (Path("/data/shop/.."), "data"),
        (Path("/"), "lake"),
        (Path("/data/<img src=x onerror=alert(1)>"), "<img src=x onerror=alert(1)>"),
        (Path("/data/a b%2F?"), "a b%2F?"),
        (Path(os.fsdecode(b"/data/caf\xe9")), "caf?"),
        (BucketLake("s3://bucket/lakes/shop"), "shop"),
    ],
    ids=str,
)
def test_a_connector_has_the_name_of_its_lakes_folder(lake: Path | BucketLake, name: str) -> None:
    assert connector_name(lake) == name


def test_a_relative_folder_has_the_name_of_the_folder_that_it_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert connector_name(Path()) == tmp_path.name
