"""Any sequence of orders and crashes leaves every connector where it was wanted, and every lake equal to its source."""

from __future__ import annotations

import pytest
from demo.embedded import EmbeddedPostgres
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.integration.server.life_machine import LifeMachine


def search(postgres: EmbeddedPostgres, examples: int, steps: int) -> None:
    LifeMachine.postgres = postgres
    # To shrink an example takes as long as to find it, and each step counts seconds.
    phases = [Phase.generate]
    run_state_machine_as_test(
        LifeMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_any_life_with_crashes_loses_nothing(postgres: EmbeddedPostgres) -> None:
    search(postgres, examples=25, steps=25)
