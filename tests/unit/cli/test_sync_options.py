"""What is wrong with an option of `tailrace sync` is said before anything is connected to or made."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace.cli.commands import app

NOWHERE = "postgresql://someone@127.0.0.1:1/shop"


def refusal(lake: Path, *options: str) -> list[str]:
    result = CliRunner().invoke(app, ["sync", NOWHERE, str(lake), *options], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert not lake.exists()
    return result.stderr.splitlines()


@pytest.mark.parametrize(
    ("option", "text", "error", "hint"),
    [
        ("--log-quota", "plenty", "'plenty' is not a size", "write a number and a unit: --log-quota 512MB"),
        ("--log-quota", "63MB", "63MB is too small: it must be 64MB or more", "--log-quota 64MB"),
        ("--log-segment", "10", "'10' is not a size", "write a number and a unit: --log-segment 512MB"),
        ("--log-segment", "100kB", "100kB is too small: it must be 1MB or more", "--log-segment 1MB"),
    ],
)
def test_a_size_that_cannot_be_meant_is_refused(tmp_path: Path, option: str, text: str, error: str, hint: str) -> None:
    assert refusal(tmp_path / "lake", option, text) == [f"error: {option} {error}", f"hint: {hint}"]


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    assert "'gzip' is not one of 'lz4', 'zstd'" in " ".join(refusal(tmp_path / "lake", "--log-compression", "gzip"))


def test_the_smallest_sizes_are_taken(tmp_path: Path) -> None:
    options = ("--log-quota", "64MB", "--log-segment", "1MB", "--log-compression", "lz4")
    assert "cannot connect" in refusal(tmp_path / "lake", *options)[0]
