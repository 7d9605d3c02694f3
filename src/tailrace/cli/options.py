"""What arguments commands share, and how a person writes them. Options that set properties are `given`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailrace.cli.phrases import phrased

Dsn = Annotated[str, typer.Argument(metavar="DSN", help=phrased("The database: {example}"))]
Lake = Annotated[Path, typer.Argument(metavar="LAKE", help="The lake's folder.")]


class EngineName(StrEnum):
    """Who answers a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"
