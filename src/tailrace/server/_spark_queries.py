"""Queries of others in the Spark that connectors work with: what they may not say.

Spark's SQL can write tables, read any file, run a script and call any method of Java's. A query of others is parsed by
Spark itself first, and refused if it is anything but a query; then it runs in a session of its own that does not know
files by name nor the functions that reach out of it.
"""

from __future__ import annotations

import re
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tailrace.server.errors import RequestError

REACHING_OUT = ("reflect", "java_method", "try_reflect", "read_files", "input_file_name")
_CATALYST = "org.apache.spark.sql.catalyst"
_REFUSED = re.compile(r"\b\w*(ScriptTransform|InsertInto|Command|Statement|CreateTable|ReplaceTable|Hint)\w*\b")
_ONLY = "only one query that reads can be asked"


def private_session(shared: SparkSession) -> SparkSession:
    """Views of its own, no files by name, no function that reaches out."""
    session = shared.newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    java: Any = session._jsparkSession
    identifier = getattr(session.sparkContext._jvm, _CATALYST).FunctionIdentifier
    for name in REACHING_OUT:
        java.sessionState().functionRegistry().dropFunction(identifier(name))
        java.sessionState().tableFunctionRegistry().dropFunction(identifier(name))
    return session


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
