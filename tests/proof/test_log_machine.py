"""Any interleaving of what can happen to a log, searched for long. HYPOTHESIS_EXAMPLES says for how long."""

from __future__ import annotations

import os

from tests.unit.log.log_machine import LogMachine, effort

TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = effort(examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "300")), steps=60)
