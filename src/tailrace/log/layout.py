"""Where a log keeps what, and who it belongs to.

log.json                     format, identity of the source; written once
lock                         held by the one writer
head                         how far the durable log goes, for readers
00000000000000000000.arrows  a segment, named by the position of its first record
00000000000000000000.*       its index files
consumers/ pins/             who still needs what
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.log.disk import Disk

FORMAT = 1
SEGMENT_SUFFIX = ".arrows"
INDEX_SUFFIXES = (".batches", ".transactions", ".lists", ".marks")


@dataclass(frozen=True)
class Manifest:
    """What `log.json` says: the source this log copies, and an id that a new log in the same place would not have."""

    identity: Mapping[str, str]
    id: str

    def to_bytes(self) -> bytes:
        return json.dumps({"format": FORMAT, "id": self.id, "identity": dict(self.identity)}, indent=1).encode()


def load_manifest(path: Path) -> Manifest:
    """DefiniteError when `path` is no log, or one of a format that this version does not know."""
    try:
        content = json.loads((path / "log.json").read_bytes())
        found, manifest = content["format"], Manifest(content["identity"], content["id"])
    except (FileNotFoundError, NotADirectoryError):
        raise DefiniteError(f"{path} is not a log", "point to the directory that holds log.json") from None
    except (ValueError, KeyError, TypeError):
        raise DefiniteError(f"{path / 'log.json'} is damaged") from None
    if found != FORMAT:
        raise DefiniteError(f"{path} has log format {found}, this version reads format {FORMAT}")
    return manifest


def create(path: Path, identity: Mapping[str, str], disk: Disk) -> Manifest:
    """Begin a log, or begin it anew, with an id of its own."""
    manifest = Manifest(dict(identity), uuid.uuid4().hex)
    disk.publish(path / "log.json", manifest.to_bytes())
    return manifest


def create_or_check(path: Path, identity: Mapping[str, str], disk: Disk) -> Manifest:
    """The manifest of the log at `path`, made if it is not there. DefiniteError when it is another source's."""
    if not (path / "log.json").exists():
        return create(path, identity, disk)
    manifest = load_manifest(path)
    if dict(manifest.identity) != dict(identity):
        raise DefiniteError(
            f"{path} is the log of {_words(manifest.identity)}, not of {_words(identity)}",
            "give each source a log directory of its own",
        )
    return manifest


def segment_path(path: Path, position: int) -> Path:
    return path / f"{position:020d}{SEGMENT_SUFFIX}"


def index_path(path: Path, position: int, suffix: str) -> Path:
    return path / f"{position:020d}{suffix}"


def segment_positions(path: Path) -> list[int]:
    """First positions of all segments, in order."""
    return sorted(int(entry.stem) for entry in path.glob(f"*{SEGMENT_SUFFIX}"))


def _words(identity: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(identity.items()))
