"""`python -m tests.crash.machine ORDER`: a connector whose lake is in a bucket, on a machine that a test takes away.

The order is JSON: where the source and the lake are, which home the machine has. It runs until it is killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.running import connector_of

from tailrace.model.lake_address import BucketLake
from tailrace.settings import Confirm, ConnectorSettings
from tailrace.source.kinds import source_of


def settings_for(order: dict[str, Any]) -> ConnectorSettings:
    lake = BucketLake(order["lake"], tuple(order["options"].items()), Path(order["home"]))
    return ConnectorSettings(lake, publish_every_seconds=0.2, confirm=Confirm(order.get("confirm", "lake")))


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    connector = connector_of(settings_for(order), source_of(order["dsn"]))
    connector.start()
    connector.wait()
