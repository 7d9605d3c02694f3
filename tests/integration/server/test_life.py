"""Any sequence of orders and crashes leaves every connector where it was wanted, and every lake equal to its source."""

from __future__ import annotations

import os

import pytest
from demo.embedded import EmbeddedPostgres
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.integration.server.life_machine import LifeMachine

EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "25"))
"""Of a proof; each takes a minute."""


def search(machine: type[LifeMachine], postgres: EmbeddedPostgres, examples: int, steps: int) -> None:
    machine.postgres = postgres
    # To shrink an example takes as long as to find it, and each step counts seconds.
    phases = [Phase.generate]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.timeout(300)
def test_some_lives_with_crashes_lose_nothing(postgres: EmbeddedPostgres) -> None:
    search(LifeMachine, postgres, examples=2, steps=8)


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_any_life_with_crashes_loses_nothing(postgres: EmbeddedPostgres) -> None:
    search(LifeMachine, postgres, examples=EXAMPLES, steps=25)
