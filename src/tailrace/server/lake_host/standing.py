"""What a lake's files say of its run: whether there is one, how it is, or how the last one ended. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.connector.events import ConnectorState
from tailrace.server.supervisor.lifecycle import Life, Phase, Target

KILLED = "the last run did not end by itself: it was killed, or the machine went down"
NO_RUN = Life(Target.STOPPED, Phase.IDLE)
_ENDED = (ConnectorState.STOPPED, ConnectorState.FAILED)


@dataclass(frozen=True)
class RunStanding:
    """A run, or none."""

    life: Life
    state: ConnectorState | None
    """Of the run; None where there is none."""
    ended_by: str | None = None
    """Why there is none, where the last one did not end in order."""


def standing_of(holder: int | None, stored: Mapping[str, Any] | None) -> RunStanding:
    """Of the process that has the lake's lock, and what `state.json` has."""
    state = ConnectorState.STOPPED if stored is None else ConnectorState(stored["state"])
    if holder is None:
        if state not in _ENDED:
            return RunStanding(NO_RUN, None, KILLED)
        failed = state is ConnectorState.FAILED and stored is not None
        return RunStanding(NO_RUN, None, f"the last run failed: {stored['reason']}" if failed and stored else None)
    if state in _ENDED:
        # It has the lake and has not come so far as to say so.
        return RunStanding(Life(Target.RUNNING, Phase.UP), ConnectorState.STARTING)
    if state is ConnectorState.PAUSED:
        return RunStanding(Life(Target.PAUSED, Phase.HELD), state)
    return RunStanding(Life(Target.RUNNING, Phase.UP), state)
