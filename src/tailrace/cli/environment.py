"""Options from the environment: `--publish-every` of `tailrace sync` is also `TAILRACE_SYNC_PUBLISH_EVERY`.

The command line counts more than the environment. A variable that belongs to no option gets a warning, because a table
pattern with a misspelt name would otherwise copy every table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

PREFIX = "TAILRACE"
_OF_KUBERNETES = re.compile(r"_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_\w+)?)$")
"""What Kubernetes sets for a service that is called like a command."""


def name_variables(parameters: Sequence[Any], prefix: str | None) -> None:
    """Every option gets its variable, unless it ends the command as soon as it is read: `--help` and `--version` are
    asked by people."""
    for each in parameters:
        if each.param_type_name != "option":
            continue
        # Ours has the name that a person knows, where the framework's has the one in the code.
        is_taken, each.allow_from_autoenv = each.allow_from_autoenv, False
        if prefix is None or each.is_eager or not each.expose_value or not is_taken:
            continue
        own = variable_of(prefix, each)
        names = list(dict.fromkeys([own, *_names(each)]))
        each.envvar = own if len(names) == 1 else names
        each.show_envvar = False
        each.value_from_envvar = _Reading(each).value


def _names(option: Any) -> list[str]:
    return [option.envvar] if isinstance(option.envvar, str) else list(option.envvar or ())


def variable_of(prefix: str, option: Any) -> str:
    """`TAILRACE_SYNC_LOG_QUOTA`."""
    longest = max(option.opts, key=len)
    return f"{prefix}_{longest.lstrip('-').replace('-', '_').upper()}"


class _Reading:
    """One option's value in the environment."""

    def __init__(self, option: Any) -> None:
        self._option = option

    def value(self, ctx: Any) -> str | list[str] | None:
        text = self._option.resolve_envvar_value(ctx)
        # What is wrong with the value is said of the variable too, where it came from there.
        self._option.show_envvar = text is not None
        return split(text) if text is not None and self._option.multiple else text


def split(text: str) -> list[str]:
    """Several values are separated by blanks; if there are several lines, by the ends of lines alone. So a value with
    blanks is a line, and no character needs to be escaped."""
    values = text.splitlines() if "\n" in text else text.split()
    return [value.strip() for value in values if value.strip()]


def warn_of_unknown(command: str, parameters: Sequence[Any], prefix: str, environment: Mapping[str, str]) -> None:
    """A line for each variable that looks like an option of this command and is none."""
    known = {name for each in parameters for name in _names(each)}
    for name in sorted(environment):
        is_ours = name.startswith(f"{prefix}_") and name not in known
        if is_ours and not _OF_KUBERNETES.search(name):
            print(f"warning: {name} has no effect: {command} has no such option", file=sys.stderr)


def epilog(parameters: Sequence[Any]) -> str:
    """How to find the variable of each option."""
    named = next((each for each in parameters if each.param_type_name == "option" and each.envvar), None)
    if named is None:
        return ""
    option, variable = max(named.opts, key=len), _names(named)[0]
    return f"Every option can also be set in the environment: `{option}` as `{variable}`."
