"""Back to the last whole version of a Delta table, after a crash that may have been a power cut.

Versions up to the newest that a cut names were made durable before that cut. Of what came later, anything may be
missing: a commit without its files, a commit of zeros, a gap in the numbers. Such a version and all after it are moved
out of the log. Their rows come again from the transaction log, or with a new copy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.lake.delta._commit_log import LAST_CHECKPOINT, Commit, CommitLog, number_of, with_checksums
from tailrace.lake.delta._whole_files import is_whole, is_whole_rows
from tailrace.lake.files import sync

THREADS = 8


def recover(log: CommitLog, trusted: int | None, aside: Path) -> list[int]:
    """Move what is not whole into a new folder in `aside`. Returns the versions of which something was moved.

    `trusted` is a version that was made durable: it and those before are looked at only as far as that costs little.
    """
    files = log.files()
    newest = max((number for path in files if (number := number_of(path)) is not None), default=None)
    versions = _reachable(log.versions(), log.checkpoints())
    if newest == trusted and _newest_whole(log, versions, trusted) == trusted:
        return []
    out = {path for path in files if _is_extra(path, trusted) and not is_whole(path)}
    checkpoints = log.checkpoints() - {number_of(path) for path in out}
    kept = _newest_whole(log, _reachable(log.versions(), checkpoints), trusted)
    out |= {path for path in files if kept is None or (number_of(path) or 0) > kept}
    if not _is_good_hint(log, {number for number in checkpoints if kept is not None and number <= kept}):
        out.add(log.folder / LAST_CHECKPOINT)
    return _move(log, set(with_checksums(out)), aside)


def _is_extra(path: Path, trusted: int | None) -> bool:
    """Derived from commits, and not made durable: Delta does without it."""
    number = number_of(path)
    is_checksum = path.name.startswith(".")
    return not is_checksum and path.suffix != ".json" and number is not None and (trusted is None or number > trusted)


def _reachable(versions: list[int], checkpoints: set[int]) -> list[int]:
    """The versions that can be put together: from the very first on, or from a checkpoint on."""
    found: list[int] = []
    for version in versions:
        if version == 0 or version in checkpoints or (found and version == found[-1] + 1):
            found.append(version)
    return found


def _newest_whole(log: CommitLog, versions: list[int], trusted: int | None) -> int | None:
    """The newest version up to which none is missing and whose files are all whole."""
    if trusted is not None and trusted in versions:
        found = _last_whole(log, _dense(versions, trusted), trusted)
        if found is not None:
            return found
        versions = [version for version in versions if version < trusted]
    return _last_whole(log, _dense(versions, versions[0]), trusted) if versions else None


def _dense(versions: list[int], first: int) -> Iterator[int]:
    """From `first` up to the first that is missing."""
    for number, version in enumerate(versions[versions.index(first) :], first):
        if number != version:
            return
        yield version


def _last_whole(log: CommitLog, versions: Iterable[int], trusted: int | None) -> int | None:
    """Plays commits back. A damaged file counts until a later version no longer needs it."""
    found: int | None = None
    damaged: set[Path] = set()
    with ThreadPoolExecutor(THREADS) as pool:
        for version in versions:
            commit = _read(log, version)
            if commit is None:
                break
            check = partial(is_whole_rows, to_the_end=trusted is None or version > trusted)
            are_whole = pool.map(check, commit.added)
            damaged -= commit.removed
            damaged |= {rows.path for rows, fine in zip(commit.added, are_whole, strict=True) if not fine}
            if not damaged:
                found = version
    return found


def _read(log: CommitLog, version: int) -> Commit | None:
    """None for a damaged one."""
    try:
        return log.read(version) if is_whole(log.commit_file(version)) else None
    except DefiniteError:
        return None


def _is_good_hint(log: CommitLog, checkpoints: set[int]) -> bool:
    """Whether `_last_checkpoint` names one that is there."""
    hint = log.folder / LAST_CHECKPOINT
    if not hint.exists():
        return True
    return is_whole(hint) and json.loads(hint.read_bytes()).get("version") in checkpoints


def _move(log: CommitLog, paths: set[Path], aside: Path) -> list[int]:
    """The newest first: dying in between leaves a log as it could have been found. A hint to what goes, before all."""
    if not paths:
        return []
    aside.mkdir(parents=True, exist_ok=True)
    target = aside / str(len(list(aside.iterdir())) + 1)
    target.mkdir()
    for path in sorted(paths, key=lambda path: (number_of(path) is None, number_of(path), path.suffix), reverse=True):
        shutil.move(path, target / path.name)
    for folder in (target, aside, log.folder):
        sync(folder)
    return sorted({number for path in paths if (number := number_of(path)) is not None})
