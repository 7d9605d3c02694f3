"""What is wrong with a configuration, all of it at once."""

from __future__ import annotations

from collections.abc import Mapping

from tailrace.errors import DefiniteError

KEYS_HINT = "every key: tailrace run --keys, or PUT /connector-plugins/NAME/config/validate"


class ConfigurationError(DefiniteError):
    """A configuration that no connector can run with. Has every problem, and no secret."""

    def __init__(self, problems: Mapping[str, list[str]], hint: str = KEYS_HINT) -> None:
        self.problems = problems
        """By key."""
        super().__init__("; ".join(self.lines), hint)

    @property
    def lines(self) -> list[str]:
        """One for each problem."""
        return [f"{key}: {problem}" for key, several in self.problems.items() for problem in several]
