"""How hard properties are tried: a little on every run, more with HYPOTHESIS_EXAMPLES, as `make proof` does."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: it would measure the machine, not the code.
settings.register_profile("tailrace", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "40")), deadline=None)
settings.load_profile("tailrace")
