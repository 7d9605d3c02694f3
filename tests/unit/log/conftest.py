"""Logs of these tests lie in memory: opening and removing thousands of small files is most of what a disk would do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.log.records import in_memory


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with in_memory() as folder:
        yield Path(folder)
