"""What changed between two configurations, as it may be shown; and how one that was there before becomes one that may
be stored again.

A configuration that was there before is kept without its secrets: there are only references, and masks. A mask stands
for the secret that is stored now, by the rule that holds for every edit: never where it would go to another server.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tailrace.configuration.properties import MASK, is_secret, words_of
from tailrace.configuration.reading import PropertyCheck, check
from tailrace.configuration.secrets import redacted, require_given_again, unredacted
from tailrace.errors import DefiniteError

NAME = "name"


class ChangeKind(StrEnum):
    """What became of a property."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"


@dataclass(frozen=True)
class ConfigChange:
    """One property before and after. Of a secret both are masks, whatever they were."""

    field: str
    change: ChangeKind
    before: str | None
    after: str | None


def concealed(config: Mapping[str, str]) -> dict[str, str]:
    """A configuration without its secrets and without the references to them."""
    return {key: MASK if value and is_secret(key, config) else value for key, value in redacted(config).items()}


def changes_between(
    before: Mapping[str, str], after: Mapping[str, str], noted: Collection[str] = ()
) -> list[ConfigChange]:
    """By property. What was `noted` changed although it looks the same: both are the masks of secrets."""
    found = []
    old, new = concealed(before), concealed(after)
    for key in sorted({*before, *after}):
        if before.get(key) == after.get(key) and key not in noted:
            continue
        kind = ChangeKind.ADDED if key not in before else ChangeKind.MODIFIED
        found.append(
            ConfigChange(key, kind if key in after else ChangeKind.REMOVED, old.get(key), new.get(key)),
        )
    return found


@dataclass(frozen=True)
class Reversion:
    """A configuration that was there before, about to be stored again."""

    config: Mapping[str, str]
    """With the mask where a secret stays what it is now."""
    changes: list[ConfigChange]
    checks: list[PropertyCheck]
    """Of what is given, as it would be stored."""
    kept: list[str]
    """Secrets that stay what they are now."""
    needed: list[str]
    """Secrets that have to be given again."""
    problem: DefiniteError | None
    """Why it cannot be stored; None where it can."""

    @classmethod
    def of(cls, then: Mapping[str, str], now: Mapping[str, str], given: Mapping[str, str]) -> Reversion:
        """Of what is kept of a configuration, the one that is stored, and secrets that are given again."""
        config = {**then, **given}
        masked = sorted(key for key, value in config.items() if value == MASK)
        problem, needed = _refusal(config, now)
        full = config if problem else unredacted(config, now)
        needed += [key for key in masked if full[key] == MASK and key not in needed]
        checks = [each for each in check(full) if each.is_given or each.errors]
        if problem is None:
            errors = [f"{each.name}: {error}" for each in checks for error in each.errors]
            problem = (
                DefiniteError("; ".join(errors), "give it in the body, or choose another version") if errors else None
            )
        kept = [key for key in masked if key not in needed]
        return cls(config, changes_between(now, full, given), checks, kept, needed, problem)


def _refusal(config: Mapping[str, str], now: Mapping[str, str]) -> tuple[DefiniteError | None, list[str]]:
    try:
        require_given_again(config, now)
    except DefiniteError as error:
        return error, [words_of(now).password]
    return None, []


def with_stored_secrets(
    config: Mapping[str, str], stored: Mapping[str, str]
) -> tuple[dict[str, str], Mapping[str, str]]:
    """The configuration with the secrets that it shows masked, where they may be used, and by key what keeps them from
    being used."""
    problem, needed = _refusal(config, stored)
    if problem is None:
        return unredacted(config, stored), {}
    return dict(config), dict.fromkeys(needed, f"{problem.message}; {problem.hint}")
