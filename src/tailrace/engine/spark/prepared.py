"""A Spark that starts in half the time: its jars found and its classes parsed once, for all later starts.

`python -m tailrace.engine.spark.prepared` prepares it; `make setup` does so. What is prepared lies in the user's cache
folder under the versions that it was made with. Where there is nothing, or something else, Spark starts as ever: it
only takes longer.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tailrace.storage.files import replace

PACKAGES = "spark.jars.packages"
CLASS_PATH = "spark.driver.extraClassPath"
JVM_OPTIONS = "spark.driver.extraJavaOptions"


@dataclass(frozen=True)
class PreparedStart:
    """What a JVM is started with."""

    jars: tuple[str, ...]
    archive: Path
    """Class data of the JVM's own making. One that does not fit is left aside by the JVM."""


def applied(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a local Spark, with what is prepared for them."""
    if PACKAGES not in options or CLASS_PATH in options:
        return dict(options)
    prepared = _find(options[PACKAGES])
    return dict(options) if prepared is None else _with(options, prepared, "SharedArchiveFile", prepared.archive)


def _with(options: Mapping[str, str], prepared: PreparedStart, archive_option: str, path: Path) -> dict[str, str]:
    kept = {name: value for name, value in options.items() if not name.startswith("spark.jars.")}
    kept[CLASS_PATH] = os.pathsep.join(prepared.jars)
    # An archive that is damaged would end the JVM; one whose checksums are wrong is left aside.
    kept[JVM_OPTIONS] = f'"-XX:{archive_option}={path}" -XX:+VerifySharedSpaces {kept.get(JVM_OPTIONS, "")}'
    return kept


def _find(packages: str) -> PreparedStart | None:
    try:
        fields: dict[str, Any] = json.loads(_record(packages).read_bytes())
        prepared = PreparedStart(tuple(fields["jars"]), Path(fields["archive"]))
        is_whole = prepared.archive.stat().st_size == fields["archive_bytes"] and all(
            map(os.path.exists, fields["jars"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return prepared if is_whole else None


def _record(packages: str) -> Path:
    """Where the record is that belongs to these packages, this Java and this Spark."""
    home = os.environ.get("JAVA_HOME")
    java = Path(shutil.which("java", path=f"{home}/bin" if home else None) or "java").resolve()
    stamp = java.stat().st_mtime_ns if java.exists() else 0
    import pyspark

    made_with = [packages, str(java), str(stamp), version("pyspark"), str(pyspark.__path__[0])]
    key = hashlib.sha256(json.dumps(made_with).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tailrace" / f"spark-{key}.json"


def prepare() -> PreparedStart:
    """Find the jars, with a network the first time, and have a JVM write down the classes of a first piece of work."""
    from tailrace.engine.spark.options import BRIEF_JVM, local_options
    from tailrace.lake.formats import format_named

    options = {**local_options(format_named("delta")), JVM_OPTIONS: BRIEF_JVM}
    record = _record(options[PACKAGES])
    record.parent.mkdir(0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=record.parent) as folder:
        found = _run("jars", options, Path(folder))
        jars = tuple(jar.removeprefix("file://") for jar in found.split(",") if jar)
        fresh, archive = Path(folder, "archive"), record.with_suffix(".jsa")
        prepared = PreparedStart(jars, archive)
        _run("work", _with(options, prepared, "ArchiveClassesAtExit", fresh), Path(folder))
        # The archive first: a record names only what is there, and a JVM that has the old one mapped keeps it.
        fresh.replace(archive)
    store(options[PACKAGES], prepared)
    return prepared


def store(packages: str, prepared: PreparedStart) -> None:
    record = _record(packages)
    record.parent.mkdir(0o700, parents=True, exist_ok=True)
    size = prepared.archive.stat().st_size
    fields = {"jars": prepared.jars, "archive": str(prepared.archive), "archive_bytes": size}
    replace(record, json.dumps(fields).encode(), record.with_suffix(f".{os.getpid()}"))


def _run(what: str, options: Mapping[str, str], folder: Path) -> str:
    """Spark with these options in a process of its own, for a moment. The last line that it printed."""
    command = [sys.executable, "-m", "tailrace.engine.spark.prepared", what, str(folder)]
    done = subprocess.run(command, input=json.dumps(options), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"Spark did not start:\n{done.stderr}")
    return done.stdout.splitlines()[-1]


def _main(what: str, folder: Path) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in json.load(sys.stdin).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    if what == "work":
        context.parallelize([1, 2], 2).map(str).collect()
        path = (folder / "table").as_uri()
        spark.range(2).write.format("delta").save(path)
        spark.read.format("delta").load(path).groupBy("id").count().collect()
    jars, jvm = context.getConf().get("spark.jars", ""), context._gateway.proc  # type: ignore[union-attr]
    spark.stop()
    jvm.stdin.close()
    jvm.wait()
    print(f"\n{jars}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _main(sys.argv[1], Path(sys.argv[2]))
    else:
        prepare()
