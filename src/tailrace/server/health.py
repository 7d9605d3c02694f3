"""Whether connectors get somewhere. Pure.

A process that lives and does nothing is not healthy: a connector that is wanted must have a run, and a run that has
something to do must have got further lately.
"""

from __future__ import annotations

from tailrace.connector.events import ConnectorState
from tailrace.server.supervisor.board import Notes
from tailrace.server.supervisor.lifecycle import Phase, Target
from tailrace.server.supervisor.supervisor import ConnectorView

STALLED_SECONDS = 120.0


def why_not_progressing(view: ConnectorView, notes: Notes, now: float) -> str | None:
    """For a person; None for one that progresses, or is not wanted to."""
    if view.life.target is not Target.RUNNING:
        return None
    if view.life.phase in (Phase.FAILED, Phase.WAITING):
        return view.trace or view.life.phase.value
    if view.status is None or view.status.state in (ConnectorState.STARTING, ConnectorState.STOPPED):
        return "not started yet"
    if notes.moved_at is not None and now - notes.moved_at > STALLED_SECONDS:
        why = _why(notes)
        return f"no further for {now - notes.moved_at:.0f} s{f': {why}' if why else ''}"
    return None


def _why(notes: Notes) -> str | None:
    if notes.trouble is not None:
        return notes.trouble.message
    is_mute = notes.progress is not None and notes.progress.lag_bytes is None and notes.counts_bytes
    return "the source does not answer" if is_mute else None
