"""The process of one capture, as its connector has it: a fork with two pipes, for commands and for reports.

It is where the connector is at that moment: in its folder, with its environment and its paths. It ends with its pipes,
not with the fork server: when that is killed, captures live on until they are told.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import IO

from tailrace.forks.forks import Fork, Forks

FORKS = Forks("tailrace.connector.start._capture_fork_server", lambda: os.environ)


class CaptureFork:
    """A capture that has been started, with its standard input and output."""

    def __init__(self, module: str) -> None:
        """`module` is what it needs besides our own."""
        commands, stdin = os.pipe()
        stdout, reports = os.pipe()
        self.stdin: IO[str] = open(stdin, "w")  # noqa: SIM115
        self.stdout: IO[str] = open(stdout)  # noqa: SIM115
        try:
            self.process: Fork = FORKS.start(module, [commands, reports, 2])
        except BaseException:
            for pipe in (self.stdin, self.stdout):
                pipe.close()
            raise
        finally:
            for file in (commands, reports):
                os.close(file)
        self._tell_surroundings()

    def close_input(self) -> None:
        """Which tells a capture that lives to end."""
        with suppress(BrokenPipeError):
            self.stdin.close()

    def _tell_surroundings(self) -> None:
        path = [entry or os.getcwd() for entry in sys.path]
        surroundings = {"folder": os.getcwd(), "environment": dict(os.environ), "path": path}
        # Whoever looks after it notices if it has died already.
        with suppress(BrokenPipeError):
            self.stdin.write(json.dumps(surroundings) + "\n")
            self.stdin.flush()
