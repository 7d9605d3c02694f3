"""What is found out about a cluster before it gets work, without one."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from tests.cluster import bare_python

from tailrace.engine.spark.cluster import NEEDED, packed, require_reachable
from tailrace.engine.spark.errors import SessionError
from tailrace.settings import SparkSettings

LOOK = """
from pathlib import Path
import sys
from tailrace.engine.spark.cluster import missing
for message, hint in missing(Path(sys.argv[1]), ()):
    print(message, hint, sep="\\n")
"""
WORK = """
import tailrace.changes.folding, tailrace.lake.delta.format, tailrace.source.postgres.source
print(tailrace.source.postgres.source.__file__)
"""


def on_executor(python: Path, folder: Path, code: str, *arguments: str) -> str:
    """What a Python prints that has what Spark gives it and our package as we send it."""
    sparks = Path(pyspark.__file__).parent / "python" / "lib"
    places = [packed(folder), *sparks.glob("*.zip")]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [str(python), "-c", code, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=folder).stdout


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that answers no one: taken, and not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_what_an_executor_lacks_is_named_packages_first_then_the_lake(tmp_path: Path) -> None:
    mark = tmp_path / "lake" / "mark"
    without = on_executor(bare_python(tmp_path / "without", with_packages=False), tmp_path, LOOK, str(mark))
    assert f"lacks {' '.join(NEEDED)}\npip install" in without
    python = bare_python(tmp_path / "with", with_packages=True)
    assert f"does not see the lake in {mark.parent}" in on_executor(python, tmp_path, LOOK, str(mark))
    mark.parent.mkdir()
    mark.touch()
    assert on_executor(python, tmp_path, LOOK, str(mark)) == ""


def test_the_package_that_is_sent_along_is_all_that_an_executor_imports_of_us(tmp_path: Path) -> None:
    python = bare_python(tmp_path / "python", with_packages=True)
    assert on_executor(python, tmp_path, WORK).startswith(str(tmp_path / "tailrace.zip"))


def test_a_master_that_is_not_there_or_could_not_answer_is_refused_before_anything_is_begun(unused_port: int) -> None:
    require_reachable(SparkSettings())
    with pytest.raises(SessionError, match=f"no Spark master answers at spark://127.0.0.1:{unused_port}"):
        require_reachable(SparkSettings(f"spark://127.0.0.1:{unused_port}"))
    with pytest.raises(SessionError, match="spark://here is not a Spark master"):
        require_reachable(SparkSettings("spark://here"))
    with pytest.raises(SessionError, match="cannot reach this process") as refused:
        require_reachable(SparkSettings("spark://10.255.0.1:7077"))
    assert "spark.driver.host=" in str(refused.value.hint)
