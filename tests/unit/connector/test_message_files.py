"""What a connector tells about itself is in files that only their owner may read, the rotated ones too."""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tailrace.connector.messages import join_owner, messages_to, own, owned, owning


def test_every_file_is_private_whoever_made_it_and_holds_a_json_object_a_line(tmp_path: Path) -> None:
    with messages_to(tmp_path / "tailrace.log", file_bytes_max=1000):
        for number in range(40):
            logging.getLogger("tailrace.test").info("something happened", extra={"number": number})
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == [f"tailrace.log{end}" for end in ("", ".1", ".2", ".3")]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    told = [json.loads(line)["number"] for path in files for line in path.read_text().splitlines()]
    assert 39 in told


def test_each_of_several_connectors_has_its_own_messages_and_those_of_no_connector(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("a", "b")}

    def say(text: str) -> None:
        logging.getLogger("tailrace.test").info(text)

    def connector(name: str) -> None:
        own(files[name])
        say(f"{name} itself")
        helper = threading.Thread(target=owned(lambda: say(f"{name} helper")))
        helper.start()
        helper.join()
        with ThreadPoolExecutor(1, "pool", join_owner()) as pool:
            pool.submit(say, f"{name} pool").result()

    with messages_to(files["a"]), messages_to(files["b"]):
        for name in files:
            thread = threading.Thread(target=connector, args=(name,))
            thread.start()
            thread.join()
        say("the process")
    told = {
        name: [json.loads(line)["message"] for line in path.read_text().splitlines()] for name, path in files.items()
    }
    assert told == {name: [f"{name} {who}" for who in ("itself", "helper", "pool")] + ["the process"] for name in files}


def test_a_thread_is_a_servers_only_while_it_serves(tmp_path: Path) -> None:
    with messages_to(tmp_path / "other"):
        with owning(tmp_path / "server"):
            logging.getLogger("tailrace.test").info("the server's")
        logging.getLogger("tailrace.test").info("nobody's")
    told = [json.loads(line)["message"] for line in (tmp_path / "other").read_text().splitlines()]
    assert told == ["nobody's"]
