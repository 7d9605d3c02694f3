"""The Spark session: embedded and local, or the driver of a cluster; quiet, with what the lake's format needs.

What is done in it is the same for both: nothing outside this module and `cluster` knows the difference.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tailrace import ending
from tailrace.engine.spark import cluster, jvm
from tailrace.engine.spark.cluster import has_context
from tailrace.engine.spark.errors import SessionError, is_spark_gone
from tailrace.engine.spark.options import PYTHON_VARIABLE, builder_with, session_options, worker_python
from tailrace.errors import DefiniteError, TailraceError
from tailrace.lake.door import LakeFormat
from tailrace.lake.formats import DEFAULT, format_named
from tailrace.settings import LOCAL_SPARK, SparkSettings

JAVA_MIN = 17
_STARTING = threading.Lock()
_CLAIMS = threading.Lock()
_USERS: WeakSet[LazySession] = WeakSet()
"""Who uses a Spark that one of them started: the last of them stops it."""


def session(
    lake_format: LakeFormat,
    log_path: Path | None = None,
    *,
    brief: bool = True,
    settings: SparkSettings = LOCAL_SPARK,
    lake: Path | None = None,
    scratch: Path | None = None,
) -> SparkSession:
    """The process's Spark session, started where there is none; `brief` tunes it for a run of seconds, not hours.

    Whatever the JVM prints goes to `log_path`, never to the terminal. What it keeps on disk meanwhile is in a temporary
    folder, below `scratch` or where this machine has such, that no other user can look into and that is removed at the
    end; so is its log where no path is given.
    TAILRACE_JVM_OPTIONS replaces our choice of JVM options. On a cluster, executors get this package and are looked at
    before they get work: they need our Python packages, and the `lake` that is seen from here.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    require_startable(settings)
    folder = ending.temporary_folder("tailrace-spark-", scratch)
    log_path = log_path or folder / "spark.log"
    try:
        with _python_of(settings):
            options = session_options(lake_format, settings, folder, brief=brief)
            started = _apart(partial(_start, options, folder, log_path))
            # Each thread of ours has one of the JVM's, and an active session there.
            started._jvm.SparkSession.setActiveSession(started._jsparkSession)  # type: ignore[union-attr]
    except Exception as error:
        raise SessionError(f"Spark did not start: {str(error).splitlines()[0]}", f"see {log_path}") from None
    if cluster.is_cluster(settings.master):
        try:
            cluster.ship(started, folder)
            cluster.require_executors(started, lake or folder)
        except BaseException:
            started.stop()
            raise
    return started


def spark_session() -> SparkSession:
    """The process's Spark session; where there is none, a local one that reads and writes lakes is started."""
    return session(format_named(DEFAULT), brief=False)


@contextmanager
def _python_of(settings: SparkSettings) -> Iterator[None]:
    """Which Python works for the session that is started inside: the one that was asked for, or our own. Threads that
    start one at the same time do so one after another."""
    with _STARTING:
        before = os.environ.get(PYTHON_VARIABLE)
        os.environ[PYTHON_VARIABLE] = worker_python(settings)
        try:
            yield
        finally:
            del os.environ[PYTHON_VARIABLE]
            if before is not None:
                os.environ[PYTHON_VARIABLE] = before


class LazySession:
    """A Spark session that is started when it is first needed. Any thread. Inside a `with`.

    Several of a process share one, whichever started it: it is stopped when the last of their `with`s ends. One that
    was there before is left alone.
    """

    def __init__(
        self,
        start: Callable[[], SparkSession],
        given: SparkSession | None = None,
        starting: Callable[[], None] = lambda: None,
        master: str = LOCAL_SPARK.master,
    ) -> None:
        """`starting` is called before one is started, by the thread that does it; `master` is where that will work."""
        self._start = start
        self._master = master
        self._starting = starting
        self._lock = threading.Lock()
        self._has_ended = self._is_starting = self._is_equipped = False
        self.is_ours = False
        """Whether it is started again when its JVM has died."""
        self.started = given
        """The session, where there is one already."""

    @property
    def has_ended(self) -> bool:
        """Whether its `with` is over."""
        return self._has_ended

    @property
    def master(self) -> str:
        """Where it works, or will, as a person wrote it."""
        return self._master if self.started is None or self.is_ours else cluster.master_of(self.started)

    def get(self) -> SparkSession:
        """Started where there is none, and again where it has died. A definite error if one that was given has ended,
        if none starts, or after the end of the `with`."""
        with self._lock:
            if self._has_ended:
                # A thread that was not waited for would start another Spark while the process ends.
                raise SessionError("Spark is no longer used here", "begin again with a new connector")
            if self.started is not None and not is_alive(self.started):
                self._let_go()
            if self.started is None:
                self._claim()
                self._starting()
                try:
                    self.started = self._start()
                except BaseException:
                    self._leave()
                    raise
            if self._has_ended:
                self._leave()
            if not self.is_ours and not self._is_equipped:
                cluster.equip(self.started)
                self._is_equipped = True
            return self.started

    def _let_go(self) -> None:
        """Of one that has ended."""
        if not self.is_ours:
            raise SessionError("the Spark session that was given has ended", "begin again with a new session")
        with _CLAIMS:
            if has_died():
                forget()
        self.started = None

    def _claim(self) -> None:
        """Before it is started: from now on no other one stops it."""
        with _CLAIMS:
            self.is_ours = bool(_USERS) or not is_running()
            if self.is_ours:
                _USERS.add(self)

    def start_soon(self) -> None:
        """Start it beside what is done now. Whoever needs it waits for it, and is told if it did not start."""
        if self.started is None and not self._is_starting:
            self._is_starting = True
            threading.Thread(target=self._try, name="spark", daemon=True).start()

    def _try(self) -> None:
        try:
            with suppress(TailraceError):
                self.get()
        finally:
            self._is_starting = False

    def _leave(self) -> None:
        """The last one of those who use it stops it. Who claims it at this moment waits, and starts another."""
        with _CLAIMS:
            is_last = self in _USERS and len(_USERS) == 1
            _USERS.discard(self)
            if is_last and self.started is not None:
                _stop(self.started)

    def __enter__(self) -> LazySession:
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended = True
        # One that is being started at this moment is stopped by who starts it, or dies with this process.
        if self._lock.acquire(blocking=False):
            try:
                self._leave()
            finally:
                self._lock.release()


def _stop(spark: SparkSession) -> None:
    """A JVM that has died, perhaps at this moment, has nothing left to stop."""
    try:
        spark.stop()
    except (Py4JError, OSError) as error:
        if not is_spark_gone(error):
            raise
        forget()


def is_alive(spark: SparkSession) -> bool:
    """Whether a session can be given work: it was not stopped, and its JVM lives."""
    if has_context(spark):
        return spark.sparkContext is SparkContext._active_spark_context and not has_died()
    return not getattr(spark, "is_stopped", False)


def is_running() -> bool:
    """Whether this process has a Spark already."""
    return SparkContext._active_spark_context is not None


def has_died() -> bool:
    """Whether the JVM that this process started is no more."""
    jvm = getattr(SparkContext._gateway, "proc", None)
    return jvm is not None and jvm.poll() is not None


def forget() -> None:
    """Of a JVM that has died: pyspark would ask it for ever."""
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()


def require_startable(settings: SparkSettings) -> None:
    """A definite error where it is plain that Spark will not start: no Java, or no cluster there."""
    require_java()
    cluster.require_reachable(settings)


def require_java() -> None:
    """A definite error unless there is a Java that runs Spark."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    hint = f"install Java {JAVA_MIN} or newer, for example: apt-get install openjdk-17-jre-headless"
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "on this machine"
        raise DefiniteError(f"Spark needs Java and there is none {where}", hint)
    version = _java_version(java, Path(java).stat().st_mtime_ns)
    if version is None or version < JAVA_MIN:
        raise DefiniteError(f"Spark needs Java {JAVA_MIN} or newer; {java} is {version or '?'}", hint)


@cache
def _java_version(java: str, changed_ns: int) -> int | None:
    """Of the program that was last changed then. A process asks it once, however many connectors it has."""
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', shown)
    return int(found.group(1)) if found else None


T = TypeVar("T")


def _apart(function: Callable[[], T]) -> T:
    """What it gives, from a thread of its own: in the main thread, pyspark would take Ctrl-C for itself. The end of the
    process does not wait for it."""
    given: Future[T] = Future()

    def run() -> None:
        try:
            given.set_result(function())
        except BaseException as error:
            given.set_exception(error)

    threading.Thread(target=run, name="spark start", daemon=True).start()
    return given.result()


def _start(options: Mapping[str, str], folder: Path, log_path: Path) -> SparkSession:
    """In this process's JVM, which is started where there is none."""
    if SparkContext._gateway is None:
        SparkContext._ensure_initialized(gateway=jvm.launch(options, folder, log_path))
    started: SparkSession = builder_with(options).getOrCreate()
    return started
