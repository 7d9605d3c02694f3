"""How commands are declared, so that their help reads as people expect: commands in the order of use, flags without a
type, arguments as they are written in documents."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tailrace.cli.environment import epilog, name_variables, warn_of_unknown
from tailrace.cli.given import with_options
from tailrace.cli.phrases import phrased

ORDER = (
    "doctor",
    "sync",
    "query",
    "ui",
    "wait",
    "tables",
    "verify",
    "drop",
    "run",
    "signal",
    "signals",
    "offsets",
    "maintain",
)
"""The commands that a newcomer meets, in that order. The others follow."""


def _plain(parameters: list[Any]) -> list[Any]:
    """A flag is there or not: it has no value whose type could be shown."""
    for each in parameters:
        if getattr(each, "is_flag", False) and each.metavar is None:
            each.metavar = ""
    return parameters


def _bare(pieces: list[str]) -> list[str]:
    """`DSN`, where typer writes `{DSN}`."""
    return [piece[1:-1] if piece.startswith("{") and piece.endswith("}") else piece for piece in pieces]


def _in_lines(text: str) -> str:
    """Examples, which are indented, each on a line of its own: Markdown would make them one paragraph."""
    return re.sub(r"^(    .*\S)\n(?=    )", r"\1  \n", text, flags=re.MULTILINE)


class Command(TyperCommand):
    """One command. Its options may come from the environment."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.epilog: str | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        parameters = _plain(super().get_params(ctx))
        name_variables(parameters, ctx.auto_envvar_prefix)
        return parameters

    def invoke(self, ctx: Any) -> Any:
        if ctx.auto_envvar_prefix is not None:
            warn_of_unknown(ctx.command_path, self.get_params(ctx), ctx.auto_envvar_prefix, os.environ)
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = epilog(self.get_params(ctx)) or None
        super().format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return _bare(super().collect_usage_pieces(ctx))


class CommandGroup(TyperGroup):
    """Several commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters = _plain(super().get_params(ctx))
        name_variables(parameters, None)
        return parameters


class Commands(CommandGroup):
    """All of them, in the order in which they are met."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


class App(typer.Typer):
    """Commands that are declared as `typer` has it."""

    def __init__(self, *, cls: type[TyperGroup] = CommandGroup, help: str = "", **options: Any) -> None:
        super().__init__(cls=cls, no_args_is_help=True, help=phrased(help) or None, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """A command whose help may have phrases of the source in it, and whose options may be `given`."""

        def declare(function: Callable[..., None]) -> Callable[..., None]:
            text = _in_lines(phrased(inspect.getdoc(function) or ""))
            declared = with_options(name or function.__name__, function)
            super(App, self).command(name, **{"cls": Command, "help": text, **options})(declared)
            return function

        return declare
