"""What arguments commands share, and how a person writes them. Options that set properties are `given`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tailrace.cli.phrases import phrased
from tailrace.model.lake_address import LakeAddress

Dsn = Annotated[str, typer.Argument(metavar="DSN", help=phrased("The database: {example}"))]
Lake = Annotated[LakeAddress, typer.Argument(metavar="LAKE", help="The lake's folder.")]
"""Given as a text, and parsed before the command runs (`cli.given`)."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead, for programs.")]
AsLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line instead, for programs.")]


class EngineName(StrEnum):
    """Who answers a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"
