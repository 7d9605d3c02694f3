"""The wheel: what is in it, and that it works in an environment of its own, away from the checkout."""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parents[2]
INGREDIENTS = ("src", "scripts", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
CONSOLE = "tailrace/server/ui"
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@dataclass(frozen=True)
class Built:
    """What was built, in a folder without anything else of the checkout."""

    wheel: Path
    sdist: Path

    def names(self) -> set[str]:
        with ZipFile(self.wheel) as file:
            return set(file.namelist())

    def metadata(self) -> Message:
        with ZipFile(self.wheel) as file:
            (name,) = [each for each in file.namelist() if each.endswith(".dist-info/METADATA")]
            return email.message_from_string(file.read(name).decode())


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel in it."""

    folder: Path

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """What a program of the environment prints."""
        program, *arguments = command
        found = call(str(self.folder / "bin" / program), *arguments, cwd=cwd or self.folder)
        return found.stdout


def call(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Without what a developer's shell knows of the checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=environment | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def built() -> Iterator[Built]:
    """From a copy, because building leaves files behind; without network."""
    with TemporaryDirectory(prefix="tailrace-wheel-") as folder:
        source, target = Path(folder, "source"), Path(folder, "built")
        for name in INGREDIENTS:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy(ROOT / name, source / name)
        make = "import sys; sys.path.insert(0, 'scripts'); import build_backend as b; "
        make += f"b.build_sdist({str(target)!r}); b.build_wheel({str(target)!r})"
        target.mkdir()
        call(sys.executable, "-c", make, cwd=source, **OFFLINE)
        (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
        yield Built(wheel, sdist)


@pytest.fixture(scope="module")
def installed(built: Built) -> Iterator[Environment]:
    """With the packages of this environment, but neither with its tailrace nor with the checkout."""
    with TemporaryDirectory(prefix="tailrace-venv-") as folder:
        call(sys.executable, "-m", "venv", "--without-pip", folder, cwd=Path(folder))
        environment = Environment(Path(folder))
        pip = [sys.executable, "-m", "pip", "--python", f"{folder}/bin/python", "install", "--quiet", "--no-deps"]
        call(*pip, str(built.wheel), cwd=Path(folder), **OFFLINE)
        # Its own packages are found first, and a line that names a folder brings no `.pth` file of that folder.
        (own,) = Path(folder, "lib").glob("python*/site-packages")
        (own / "others.pth").write_text("\n".join(sorted({sysconfig.get_path("purelib"), *_beside()})) + "\n")
        yield environment


def _beside() -> set[str]:
    """Where this environment has packages from."""
    import duckdb

    return {str(Path(duckdb.__file__).parents[1])}


def test_it_has_what_the_console_needs_the_licences_and_the_types(built: Built) -> None:
    names = built.names()
    console = {f"{CONSOLE}/packages/{name}" for name in ("preact.mjs", "hooks.mjs", "htm.mjs")}
    licences = {f"{CONSOLE}/packages/{name}.LICENSE" for name in ("preact", "htm")}
    assert console | licences | {"tailrace/py.typed", f"{CONSOLE}/static/index.html"} <= names
    told = {name.partition("/licenses/")[2].rpartition("/")[2] for name in names if "/licenses/" in name}
    assert told == {"LICENSE", "preact.LICENSE", "htm.LICENSE"}
    assert [name for name in names if name.startswith(("tests/", "demo/", "scripts/", "benchmarks/"))] == []


def test_it_has_every_file_of_the_package(built: Built) -> None:
    package = ROOT / "src" / "tailrace"
    there = {str(path.relative_to(ROOT / "src")) for path in package.rglob("*") if path.is_file()}
    there = {name for name in there if "__pycache__" not in name}
    assert there - built.names() == set()


def test_it_says_who_what_and_on_which_terms(built: Built) -> None:
    told = built.metadata()
    assert (told["Name"], told["License-Expression"], told["Requires-Python"]) == ("tailrace", "Apache-2.0", ">=3.11")
    assert told["Author"]
    assert "change data capture" in told["Keywords"]
    classifiers = told.get_all("Classifier") or []
    assert {"Topic :: Database", "Typing :: Typed", "Operating System :: POSIX :: Linux"} <= set(classifiers)
    # The licence is said by its SPDX expression alone.
    assert not [each for each in classifiers if each.startswith("License ::")]
    assert "Tailrace captures the changes" in str(told.get_payload())


def test_a_wheel_can_be_built_from_the_sdist(built: Built) -> None:
    with tarfile.open(built.sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"scripts/build_backend.py", "scripts/ui_packages.py", f"src/{CONSOLE}/packages.json", "LICENSE"} <= names


def test_it_runs_in_an_environment_of_its_own(built: Built, installed: Environment) -> None:
    version = built.metadata()["Version"]
    assert installed.run("tailrace", "--version") == f"tailrace {version}\n"
    assert installed.run("python", "-m", "tailrace", "--version") == f"tailrace {version}\n"
    place = installed.run("python", "-c", "import tailrace.server.app as app; print(app.__file__)")
    assert place.startswith(str(installed.folder))
    listed = installed.run("tailrace", "run", "--keys", "--json")
    assert '"key": "database.hostname"' in listed


@pytest.mark.timeout(900)
def test_the_demo_of_the_checkout_runs_with_it(installed: Environment, tmp_path: Path) -> None:
    where = "import sys, demo, tailrace; print(tailrace.__file__)"
    assert installed.run("python", "-c", where, cwd=ROOT).startswith(str(installed.folder))
    shown = installed.run("python", "-m", "demo", "--folder", str(tmp_path / "demo"), "--seconds", "3", cwd=ROOT)
    assert "every table is equal, compared at" in shown


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_it_runs_with_what_pip_installs_for_it(built: Built, tmp_path: Path) -> None:
    """From the package registry, into an empty environment: a gigabyte or so."""
    call(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
    installed = Environment(tmp_path / "venv")
    installed.run("pip", "install", "--quiet", f"{built.wheel}[demo]")
    assert installed.run("tailrace", "--version") == f"tailrace {built.metadata()['Version']}\n"
    shown = installed.run("python", "-m", "demo", "--folder", str(tmp_path / "demo"), "--seconds", "3", cwd=ROOT)
    assert "every table is equal, compared at" in shown
