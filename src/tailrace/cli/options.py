"""What arguments commands share, and how a person writes them. Options that set properties are `given`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tailrace.cli.phrases import phrased
from tailrace.model.lake_address import LakeAddress
from tailrace.source.kinds import all_words

Dsn = Annotated[str, typer.Argument(metavar="DSN", help=phrased("The database: {example}"))]
Lake = Annotated[LakeAddress, typer.Argument(metavar="LAKE", help="The lake's folder.")]
"""Given as a text, and parsed before the command runs (`cli.given`)."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead, for programs.")]
AsLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead, for programs.")]


def _position_words() -> list[str]:
    """What the kinds of sources call a position."""
    words = (each.phrases.get("position_word") for each in all_words())
    return [f"--{each}" for each in dict.fromkeys(words) if each]


Position = Annotated[
    str | None,
    typer.Option("--at-least", *_position_words(), metavar="POSITION", help=phrased("A position: {position}.")),
]


class EngineName(StrEnum):
    """Who answers a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"
