"""What a power cut does to files that were not synced, and who synced what."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def lose(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero_the_middle(path: Path) -> None:
    third = path.stat().st_size // 3
    path.write_bytes(path.read_bytes()[:third] + bytes(third) + path.read_bytes()[2 * third :])


DAMAGES: tuple[Callable[[Path], None], ...] = (lose, empty, zero, cut_short, zero_the_middle)


def record_syncs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What this process syncs from now on, in order."""
    synced: list[Path] = []
    really = os.fsync

    def sync(descriptor: int) -> None:
        really(descriptor)
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    monkeypatch.setattr(os, "fsync", sync)
    return synced
