"""One JVM for the commands that the tests of a worker run, one after another.

A command that starts a JVM needs three times the processor time of one that finds it running, and most tests are about
what the command does in it. So `tests.journey` lends the worker's JVM to one command at a time: the command makes its
own Spark in there, and stops it. A command that runs beside another starts its own JVM, as it does for a user; so does
one that is to be killed or interrupted, because then the end of its JVM is part of what is tested.
"""

from __future__ import annotations

from subprocess import Popen
from typing import Any

from tailrace import ending
from tailrace.engine.spark import jvm
from tailrace.engine.spark.options import session_options
from tailrace.lake.formats import format_named
from tailrace.settings import LOCAL_SPARK


class SharedJvm:
    """Started when it is first lent, and again when it has died. Ends with this process. One thread."""

    def __init__(self) -> None:
        self._gateway: Any = None
        self._borrower: Popen[Any] | None = None

    def lend(self) -> dict[str, str]:
        """The variables with which a command finds the JVM; none while another command has it."""
        if self._borrower is not None and self._borrower.poll() is None:
            return {}
        if self._gateway is None or self._gateway.proc.poll() is not None:
            self._gateway = _launched()
        # Of a command that ended without stopping its Spark: a JVM has one at a time.
        contexts = getattr(self._gateway.jvm.org.apache.spark, "SparkContext$")
        left = getattr(contexts, "MODULE$").getActive()
        if left.isDefined():
            left.get().stop()
        found = self._gateway.gateway_parameters
        return {"PYSPARK_GATEWAY_PORT": str(found.port), "PYSPARK_GATEWAY_SECRET": found.auth_token}

    def lent_to(self, process: Popen[Any]) -> None:
        """Until this process ends, no other gets the JVM."""
        self._borrower = process


def _launched() -> Any:
    folder = ending.temporary_folder("tailrace-tests-")
    options = session_options(format_named("delta"), LOCAL_SPARK, folder, brief=True)
    return jvm.launch(options, folder, folder / "spark.log")


SHARED = SharedJvm()
