"""A real S3 server for tests: s3proxy, which keeps each object as a file and meets conditions exactly.

`python -m tests.s3` fetches it, as `make setup` does: with the Ivy that comes with Spark, from where Ivy finds Delta's
jar too, into the user's cache folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.sax.saxutils import quoteattr

import pyspark
from tests.postgres import wait_until

from tailrace import ending
from tailrace.storage.bucket import Bucket

VERSION = "4.1.0"
KEY_ID, SECRET = "local-identity", "local-credential-of-tests"
WANTED = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tailrace" module="tests"/>
  <dependencies>
    <dependency org="org.gaul" name="s3proxy" rev="{VERSION}" transitive="false">
      <artifact name="s3proxy" type="jar" ext="jar" m:classifier="jar-with-dependencies"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
SETTINGS = """<ivysettings>
  <settings defaultResolver="named"/>
  <resolvers><ibiblio name="named" m2compatible="true" root={repository}/></resolvers>
</ivysettings>
"""
JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@dataclass(frozen=True)
class S3Server:
    """One that runs. A bucket is a folder of it, and an object a file there."""

    folder: Path
    port: int
    options: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        options = {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "access_key_id": KEY_ID,
            "secret_access_key": SECRET,
        }
        object.__setattr__(self, "options", options)

    def make_bucket(self, name: str) -> str:
        """Its URL."""
        (self.folder / name).mkdir()
        return f"s3://{name}"

    def bucket(self, url: str, cache: Path, **options: str) -> Bucket:
        return Bucket.of(url, {**self.options, **options}, cache_root=cache)


@contextmanager
def s3_server(*, is_open: bool = False) -> Iterator[S3Server]:
    """Runs while the `with` does, on a port of its own choice. An open one takes requests of anyone: they may have been
    altered on their way."""
    jar = fetched()
    with tempfile.TemporaryDirectory(prefix="tailrace-s3-") as name:
        buckets, settings, log = Path(name, "buckets"), Path(name, "settings"), Path(name, "log")
        buckets.mkdir()
        authorization = "none" if is_open else f"aws-v2-or-v4\ns3proxy.identity={KEY_ID}\ns3proxy.credential={SECRET}"
        settings.write_text(
            f"s3proxy.authorization={authorization}\n"
            "s3proxy.endpoint=http://127.0.0.1:0\n"
            f"jclouds.provider=filesystem-nio2\njclouds.filesystem.basedir={buckets}\n"
        )
        command = [_java(), *JVM, "-jar", str(jar), "--properties", str(settings)]
        with log.open("wb") as output:
            process = ending.started(lambda: _start(command, output))
        assert process.stdin is not None
        try:
            wait_until(lambda: _port_in(log), 60)
            yield S3Server(buckets, _port_in(log))
        finally:
            process.stdin.close()
            process.wait()


def _start(command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """It ends when our end of its pipe is closed, however that comes."""
    script = '"$@" </dev/null & read _; kill -9 $!'
    return subprocess.Popen(
        ["sh", "-c", script, "s3", *command],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _port_in(log: Path) -> int:
    """0 until it listens."""
    found = re.search(r"Started \S*ServerConnector\S*\{127\.0\.0\.1:(\d+)\}", log.read_text().replace(", ", ","))
    return int(found[1]) if found else 0


def fetched() -> Path:
    """The server's jar, with a network the first time."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailrace"
    jar = cache / f"s3proxy-{VERSION}.jar"
    if not jar.exists():
        cache.mkdir(0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _fetch(Path(folder)).replace(jar)
    return jar


def _fetch(folder: Path) -> Path:
    jars = Path(pyspark.__path__[0], "jars")
    classes = os.pathsep.join(str(next(jars.glob(f"{name}-[0-9]*.jar"))) for name in ("ivy", "commons-cli"))
    wanted = folder / "ivy.xml"
    wanted.write_text(WANTED)
    pattern = f"{folder}/[artifact].[ext]"
    command = [_java(), "-cp", classes, "org.apache.ivy.Main", "-ivy", str(wanted), "-retrieve", pattern]
    # As Spark does: a repository that the environment names takes the place of Ivy's own.
    repository = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    if repository:
        settings = folder / "settings.xml"
        settings.write_text(SETTINGS.format(repository=quoteattr(repository)))
        command += ["-settings", str(settings)]
    done = subprocess.run([*command, "-cache", str(folder / "ivy")], capture_output=True, text=True, check=False)
    found = folder / "s3proxy.jar"
    if done.returncode or not found.exists():
        raise SystemExit(f"s3proxy {VERSION} could not be fetched:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java") or "java"


if __name__ == "__main__":
    print(fetched())
