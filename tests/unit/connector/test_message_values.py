"""Messages are JSON lines, and have no values of rows in them."""

from __future__ import annotations

import json
import logging
import sys

from tailrace.connector.messages import JsonLines


def test_what_an_error_quotes_is_left_out_wherever_it_is_the_reason() -> None:
    record = logging.makeLogRecord({"msg": "table tried again", "name": "tailrace", "levelname": "WARNING"})
    record.reason = "public.t column v: the value 'it's a canary' has no exact date"
    record.event = {"record": {"reason": "the value 'canary' is too large", "copy": 1}, "tables": ["'shown'"]}
    try:
        int("canary")
    except ValueError:
        record.exc_info = sys.exc_info()
    line = JsonLines().format(record)
    assert "canary" not in line.replace('int(\\"canary\\")', "")
    found = json.loads(line)
    assert found["reason"] == "public.t column v: the value '…' has no exact date"
    assert found["event"] == {"record": {"reason": "the value '…' is too large", "copy": 1}, "tables": ["'shown'"]}
    assert found["traceback"].endswith("ValueError: invalid literal for int() with base 10: '…'")
    assert (found["level"], found["logger"], found["message"]) == ("warning", "tailrace", "table tried again")
