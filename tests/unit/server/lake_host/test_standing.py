"""What a lake's files say of its run."""

from __future__ import annotations

import pytest

from tailrace.connector.events import ConnectorState
from tailrace.server.lake_host.standing import KILLED, standing_of
from tailrace.server.supervisor.lifecycle import Phase, Target


def _stored(state: ConnectorState, reason: str | None = None) -> dict[str, str | None]:
    return {"state": state.value, "reason": reason}


@pytest.mark.parametrize("state", [None, ConnectorState.STOPPED])
def test_a_lake_that_no_process_has_and_whose_run_ended_in_order_is_stopped(state: ConnectorState | None) -> None:
    found = standing_of(None, None if state is None else _stored(state))
    assert (found.life.target, found.life.phase, found.state, found.ended_by) == (
        Target.STOPPED,
        Phase.IDLE,
        None,
        None,
    )


@pytest.mark.parametrize("state", [ConnectorState.STARTING, ConnectorState.RUNNING, ConnectorState.PAUSED])
def test_a_run_that_said_it_was_there_and_has_let_go_of_the_lake_was_killed(state: ConnectorState) -> None:
    found = standing_of(None, _stored(state))
    assert (found.life.phase, found.ended_by) == (Phase.IDLE, KILLED)


def test_a_run_that_failed_says_why() -> None:
    assert standing_of(None, _stored(ConnectorState.FAILED, "no slot")).ended_by == "the last run failed: no slot"


@pytest.mark.parametrize("state", [ConnectorState.STOPPED, ConnectorState.FAILED])
def test_a_process_that_has_the_lake_before_it_says_so_is_starting(state: ConnectorState) -> None:
    found = standing_of(4711, _stored(state, "earlier"))
    assert (found.life.phase, found.state, found.ended_by) == (Phase.UP, ConnectorState.STARTING, None)


def test_a_paused_run_is_held() -> None:
    found = standing_of(4711, _stored(ConnectorState.PAUSED))
    assert (found.life.target, found.life.phase, found.state) == (Target.PAUSED, Phase.HELD, ConnectorState.PAUSED)
