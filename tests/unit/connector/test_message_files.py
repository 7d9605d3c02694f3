"""What a connector tells about itself is in files that only their owner may read, the rotated ones too."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tailrace.connector import _messages
from tailrace.connector._messages import messages_to


def test_every_file_is_private_whoever_made_it_and_holds_a_json_object_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_messages, "FILE_BYTES_MAX", 1000)
    with messages_to(tmp_path / "tailrace.log"):
        for number in range(40):
            logging.getLogger("tailrace.test").info("something happened", extra={"number": number})
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == [f"tailrace.log{end}" for end in ("", ".1", ".2", ".3")]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    told = [json.loads(line)["number"] for path in files for line in path.read_text().splitlines()]
    assert 39 in told
