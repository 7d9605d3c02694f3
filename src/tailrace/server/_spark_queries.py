"""Queries of others in the Spark that connectors work with: what they may not say.

Spark's SQL can write tables, read any file, run a script and call any method of Java's. A query of others is parsed by
Spark itself first, and refused if it is anything but a query; then it runs in a session of its own that does not know
files by name nor the functions that reach out of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.server.errors import RequestError, TimedOutError
from tailrace.spark.session import has_died
from tailrace.spark.task_errors import SessionError, is_spark_gone

DYING_SECONDS = 2.0
"""How long a JVM may take from the first call that fails to its end."""

REACHING_OUT = ("reflect", "java_method", "try_reflect")
"""Functions that call any method of Java's."""
_CATALYST = "org.apache.spark.sql.catalyst"
_REFUSED = re.compile(r"\b\w*(ScriptTransform|InsertInto|Command|Statement|CreateTable|ReplaceTable|Hint)\w*\b")
_ONLY = "only one query that reads can be asked"


@contextmanager
def spark_required() -> Iterator[None]:
    """A transient error where there is no Spark to ask, or it dies meanwhile: the next who needs it starts it again."""
    try:
        yield
    except TimedOutError:
        raise
    except Exception as error:
        is_ours = isinstance(error, TailraceError) and not isinstance(error, SessionError)
        # What a query fails with tells nothing while Spark dies; what pyspark fails with comes before its end shows.
        if not is_spark_gone(error) and not has_died(0.0 if is_ours else DYING_SECONDS):
            raise
        reason = error.message if isinstance(error, SessionError) else "Spark died while it was asked"
        raise TransientError(reason, "ask again: it is started again") from None


def private_session(shared: SparkSession) -> SparkSession:
    """Views of its own, no files by name, no function that reaches out."""
    # Pyspark would print every query that fails.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    session = shared.newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for name in REACHING_OUT:
        _drop(session, name)
        try:
            session.sql(f"select {name}('java.lang.Math', 'random')")
        except PySparkException:
            continue
        raise DefiniteError("this Spark cannot be asked by others: it calls Java", "ask DuckDB: engine duckdb")
    return session


def _drop(session: SparkSession, name: str) -> None:
    """Versions of Spark differ in how they call it."""
    java: Any = session._jsparkSession
    jvm: Any = session.sparkContext._jvm
    some, identifier = jvm.scala.Option.apply, getattr(jvm, _CATALYST).FunctionIdentifier
    for named in (identifier(name, some("builtin"), some("system")), identifier(name)):
        with suppress(Py4JError):
            java.sessionState().functionRegistry().dropFunction(named)


def require_query(session: SparkSession, sql: str) -> None:
    """Refuses what is no query, before anything of it is done."""
    java: Any = session._jsparkSession
    try:
        plan = java.sessionState().sqlParser().parsePlan(sql)
    except Exception as error:
        if not isinstance(error, PySparkException):
            raise
        raise RequestError((str(error).strip().splitlines() or ["not SQL"])[0], "send one select") from None
    gateway = session.sparkContext._gateway
    if is_instance_of(gateway, plan, f"{_CATALYST}.plans.logical.Command"):
        raise RequestError(_ONLY, "send one select")
    nodes = {line.strip(" +-:'!").partition(" ")[0] for line in plan.treeString().splitlines()}
    if any(_REFUSED.search(node) for node in nodes):
        raise RequestError(_ONLY, "leave out hints, scripts and everything that writes")
