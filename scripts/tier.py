"""`python scripts/tier.py PYTEST-ARGUMENTS...`: the tests of one tier, and how long they took.

Exit code 1 if one failed, whatever happens afterwards. What failed beside other tests is run once more, alone and in
the order of the same seed, only to say what it is: a test that passes then has a race in it, or meets one of the
product's. `build/races.txt` has a line for each.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path("build")
CACHE = BUILD / "pytest_cache"
RACES = BUILD / "races.txt"
SOME_FAILED = 1


def main(arguments: list[str]) -> int:
    tier, seed = " ".join(arguments), f"--randomly-seed={time.time_ns() % 1_000_000}"
    # What failed in another tier or on another day is none of this one's.
    shutil.rmtree(CACHE, ignore_errors=True)
    print(f"== {tier} {seed}", flush=True)
    begun = time.monotonic()
    code = pytest([seed, *arguments])
    print(f"== {tier}: {time.monotonic() - begun:.0f} s", flush=True)
    if code == SOME_FAILED and (beside_others := failed()):
        print("== once more, alone: only to tell a race from a fault", flush=True)
        pytest([seed, *arguments, "-n", "0", "--last-failed"])
        tell(beside_others, failed())
    return min(code, 1)


def pytest(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={CACHE.resolve()}", *arguments]
    return subprocess.run(command, check=False).returncode


def failed() -> set[str]:
    """The tests whose last run failed."""
    path = CACHE / "v" / "cache" / "lastfailed"
    return set(json.loads(path.read_bytes())) if path.exists() else set()


def tell(beside_others: set[str], alone: set[str]) -> None:
    lines = [f"{'fault' if test in alone else 'race '} {test}" for test in sorted(beside_others)]
    with RACES.open("a", encoding="utf-8") as file:
        file.writelines(f"{time.strftime('%Y-%m-%d %H:%M')} {line}\n" for line in lines)
    print(f"== {RACES}:", *lines, sep="\n   ", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
