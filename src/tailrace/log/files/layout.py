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
import shlex
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import xxhash

from tailrace.errors import DamageError, DefiniteError, TransientError
from tailrace.log.files.disk import LogDisk

FORMAT = 3
SEGMENT_SUFFIX = ".arrows"
INDEX_SUFFIXES = (".frames", ".transactions", ".lists", ".marks")
_DIGITS = 20


@dataclass(frozen=True)
class Manifest:
    """What `log.json` says: the source this log copies, and an id that a new log in the same place would not have."""

    identity: Mapping[str, str]
    id: str
    wiping: bool = False
    """What the log held before is being removed. A crash leaves this set, and the next writer finishes the removal."""

    def to_bytes(self) -> bytes:
        fields = {"format": FORMAT, "id": self.id, "identity": dict(self.identity), "wiping": self.wiping}
        return json.dumps({**fields, "xxh3": _digest(fields)}, indent=1).encode()


def load_manifest(path: Path) -> Manifest:
    """DefiniteError when `path` is no log, or one of a format that this version does not know.
    TransientError while it is being wiped."""
    manifest = _load(path)
    if manifest.wiping:
        raise TransientError(f"the log in {path} is being wiped", "open it again when its writer has started")
    return manifest


def _load(path: Path) -> Manifest:
    try:
        fields = json.loads((path / "log.json").read_bytes())
        found, digest = fields["format"], fields.pop("xxh3", "")
    except (FileNotFoundError, NotADirectoryError):
        raise DefiniteError(f"{path} is not a log", "point to the directory that holds log.json") from None
    except (ValueError, KeyError, TypeError):
        raise DamageError(f"{path / 'log.json'} is damaged", put_aside(path)) from None
    if found != FORMAT:
        is_older = isinstance(found, int) and found < FORMAT
        raise DefiniteError(
            f"{path} has log format {found}, this version reads format {FORMAT} only",
            "build the lake again, in an empty folder" if is_older else "use the version of Tailrace that wrote it",
        )
    if digest != _digest(fields):
        raise DamageError(f"{path / 'log.json'} is damaged: its checksum does not agree", put_aside(path))
    return Manifest(fields["identity"], fields["id"], fields["wiping"])


def create(path: Path, identity: Mapping[str, str], disk: LogDisk, wiping: bool = False) -> Manifest:
    """Begin a log, or begin it again, with an id of its own."""
    for name in ("consumers", "pins"):
        disk.make_directory(path / name)
    manifest = Manifest(dict(identity), uuid.uuid4().hex, wiping)
    disk.publish(path / "log.json", manifest.to_bytes())
    return manifest


def adopt(path: Path, identity: Mapping[str, str]) -> None:
    """Let the log continue with the changes of another server. Durable when this returns; can be done twice.

    The caller holds the lake's lock and has every table copied again. The log keeps its records and its id, so that
    what is published can still be read.
    """
    if (path / "log.json").exists():
        manifest = replace(load_manifest(path), identity=dict(identity))
        LogDisk().publish(path / "log.json", manifest.to_bytes())


def end_wiping(path: Path, manifest: Manifest, disk: LogDisk) -> Manifest:
    """Say that nothing is left of what was there before."""
    done = replace(manifest, wiping=False)
    disk.publish(path / "log.json", done.to_bytes())
    return done


def create_or_check(path: Path, identity: Mapping[str, str], disk: LogDisk) -> Manifest:
    """The manifest of the log at `path`, made if it is not there. DefiniteError when it is another source's."""
    if not (path / "log.json").exists():
        if segment_positions(path):
            raise DefiniteError(
                f"{path} has segments but no log.json: it is not known which source they are of",
                "restore log.json, or use an empty directory",
            )
        return create(path, identity, disk)
    manifest = _load(path)
    if dict(manifest.identity) != dict(identity):
        raise DefiniteError(
            f"{path} is the log of {_words(manifest.identity)}, not of {_words(identity)}",
            "give each source a log directory of its own",
        )
    return manifest


def log_number(log_id: str) -> int:
    """A log's id as a number for places of fixed width."""
    return xxhash.xxh3_64_intdigest(log_id.encode())


def segment_path(path: Path, position: int) -> Path:
    return path / f"{position:0{_DIGITS}d}{SEGMENT_SUFFIX}"


def index_path(path: Path, position: int, suffix: str) -> Path:
    return path / f"{position:0{_DIGITS}d}{suffix}"


def segment_positions(path: Path) -> list[int]:
    """First positions of all segments, in order."""
    names = (entry.stem for entry in path.glob(f"*{SEGMENT_SUFFIX}"))
    return sorted(int(name) for name in names if len(name) == _DIGITS and name.isdecimal())


def _digest(fields: Mapping[str, object]) -> str:
    return f"{xxhash.xxh3_64_intdigest(json.dumps(fields, sort_keys=True).encode()):016x}"


def _words(identity: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(identity.items()))


def put_aside(path: Path) -> str:
    """The hint for a damaged log."""
    aside = f"mv {shlex.quote(str(path))} {shlex.quote(f'{path}.damaged')}"
    return f"restore the file from a copy, or put the log aside, and a sync copies every table again: {aside}"
