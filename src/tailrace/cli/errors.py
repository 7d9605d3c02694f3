"""What a person sees of an error: one line and a hint, never a stack trace."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

from tailrace.configuration.problems import ConfigurationError
from tailrace.errors import PreflightError, TailraceError


@contextmanager
def shown_errors() -> Iterator[None]:
    """Errors a person can act on become one line and a hint, with exit code 2."""
    try:
        yield
    except PreflightError as error:
        for message, hint in error.problems:
            _print(message, hint)
        raise typer.Exit(2) from None
    except ConfigurationError as error:
        for number, line in enumerate(error.lines, 1):
            _print(line, error.hint if number == len(error.lines) else None)
        raise typer.Exit(2) from None
    except TailraceError as error:
        _print(error.message, error.hint)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        with tempfile.NamedTemporaryFile("w", prefix="tailrace-error-", suffix=".log", delete=False) as file:
            traceback.print_exc(file=file)
        first_line = (str(error) or type(error).__name__).strip().splitlines()[0]
        _print(f"unexpected: {first_line[:300]}", f"the details are in {file.name}")
        raise typer.Exit(2) from None


def _print(message: str, hint: str | None) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    console.print(f"[red]error:[/red] {escape(message)}")
    for line in hint.splitlines() if hint else ():
        console.print(f"[cyan]hint:[/cyan] {escape(line)}")
