"""What a person sees of an error: one line and a hint, never a stack trace."""

from __future__ import annotations

import os
import select
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.markup import escape

from tailrace import ending
from tailrace.cli.console import PlainConsole
from tailrace.configuration.problems import ConfigurationError
from tailrace.errors import PreflightError, TailraceError


@contextmanager
def shown_errors(interrupted: str = "interrupted") -> Iterator[None]:
    """Errors a person can act on become one line and a hint, with exit code 2; a signal becomes the line
    `interrupted`."""
    ending.on_interrupt(interrupted)
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
        raise typer.Exit(ending.INTERRUPTED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if isinstance(error, BrokenPipeError) and is_unread():
            # Whoever reads our output has had enough: `tailrace query … | head`.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(0) from None
        with tempfile.NamedTemporaryFile("w", prefix="tailrace-error-", suffix=".log", delete=False) as file:
            traceback.print_exc(file=file)
        first_line = (str(error) or type(error).__name__).strip().splitlines()[0]
        _print(f"unexpected: {first_line[:300]}", f"the details are in {file.name}")
        raise typer.Exit(2) from None


def is_unread() -> bool:
    """Whether standard output is a pipe that no one reads any more."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _print(message: str, hint: str | None) -> None:
    console = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[red]error:[/red] {escape(message)}")
    for line in hint.splitlines() if hint else ():
        console.print(f"[cyan]hint:[/cyan] {escape(line)}")
