"""What is looked at before a lake is begun."""

from __future__ import annotations

from tailrace.errors import PreflightError
from tailrace.settings import ConnectorSettings
from tailrace.source.door.tables import Check, Tables


def require_ready(source: Tables, settings: ConnectorSettings) -> None:
    """A definite error with everything that is wrong, unless only some tables are: those are left out, each with its
    reason, and the others are copied."""
    failed = [check for check in source.examine(settings.tables, settings.exclude) if check.ok is False]
    if not all(check.leaves_out for check in failed):
        raise PreflightError([(_message(check), check.fix) for check in failed])


def _message(check: Check) -> str:
    return check.found if check.name == "table" else f"{check.name}: {check.found}"
