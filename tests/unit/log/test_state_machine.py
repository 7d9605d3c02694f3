"""Any interleaving of what can happen to a log. `make proof` searches longer."""

from __future__ import annotations

from tests.unit.log.log_machine import LogMachine, effort

TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = effort(examples=12, steps=25)
