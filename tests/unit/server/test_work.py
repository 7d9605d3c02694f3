"""Whose a job of Spark is: its group names the lake, or its home."""

from __future__ import annotations

from tailrace.server.api.work import owner_of

PLACES = [("/lakes/a", "a"), ("/lakes/a b", "a b"), ("/lakes/a/inner", "inner"), ("s3://bucket/shop", "shop")]


def test_a_job_belongs_to_the_connector_whose_place_its_group_names() -> None:
    groups = {
        "tailrace /lakes/a publish": "a",
        "tailrace /lakes/a copy public.orders": "a",
        "tailrace /lakes/a/_tailrace/windows read": "a",
        "tailrace /lakes/a/inner publish": "inner",
        "tailrace /lakes/a b publish": "a b",
        "tailrace s3://bucket/shop publish": "shop",
        "tailrace /lakes/ab publish": None,
        "of another program": None,
    }
    assert {group: owner_of(group, PLACES) for group in groups} == groups
    assert owner_of(None, PLACES) is None
