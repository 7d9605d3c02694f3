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
    ("option", "text", "error"),
    [
        ("--log-quota", "plenty", "'plenty' is not a size of 64MB or more: write a number and a unit, 512MB"),
        ("--log-quota", "63MB", "'63MB' is not a size of 64MB or more: write a number and a unit, 512MB"),
        ("--log-segment", "10", "'10' is not a size of 1MB or more: write a number and a unit, 512MB"),
        ("--log-segment", "100kB", "'100kB' is not a size of 1MB or more: write a number and a unit, 512MB"),
        ("--retain", "soon", "'soon' is not a time: write a number and a unit, 7d, 12h, 30min or 90s"),
        ("--slot", "My-Slot", "may have up to 63 lowercase letters, digits and underscores"),
        (
            "--watermarks",
            "insert_insert",
            "needs --signal-table to write to; without it, windows are exact all the same",
        ),
        ("--spark-master", "mesos", "'mesos' is not a Spark master: give one of local[*]"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_by_the_name_of_its_option(
    tmp_path: Path, option: str, text: str, error: str
) -> None:
    told, hint = refusal(tmp_path / "lake", option, text)
    assert told.startswith(f"error: {option}: {error}")
    assert hint == "hint: every option: tailrace sync --help"


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    options = ("--append-only", "public.*", "--publication", "p", "--retain", "soon")
    assert refusal(tmp_path / "lake", *options) == [
        "error: --retain: 'soon' is not a time: write a number and a unit, 7d, 12h, 30min or 90s",
        "error: --append-only: not with --publication: tables without a key need a publication of their own",
        "hint: every option: tailrace sync --help",
    ]


@pytest.mark.parametrize("given", ["a", "a=", "a=38", "a=39,1", "a=5,6", "a=0,0", "=5,2", "a=5,-1", "a=x,y"])
def test_a_decimal_without_a_sound_precision_and_scale_is_refused(tmp_path: Path, given: str) -> None:
    assert "has no precision and scale" in refusal(tmp_path / "lake", "--as-decimal", given)[0]


def test_a_setting_of_spark_is_a_key_and_a_value(tmp_path: Path) -> None:
    assert refusal(tmp_path / "lake", "--spark-conf", "memory=2g") == [
        "error: --spark-conf 'memory=2g' is not a Spark setting",
        "hint: write it as spark.KEY=VALUE",
    ]


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    assert "'gzip' is not one of 'none', 'lz4', 'zstd'" in " ".join(
        refusal(tmp_path / "lake", "--log-compression", "gzip")
    )


def test_the_smallest_sizes_are_taken(tmp_path: Path) -> None:
    options = ("--log-quota", "64MB", "--log-segment", "1MB", "--log-compression", "lz4")
    assert "cannot connect" in refusal(tmp_path / "lake", *options)[0]
