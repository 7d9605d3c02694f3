"""Back to the last whole version of a Delta table, after a crash that may have been a power cut.

Versions up to the newest that a cut names were made durable before that cut. Of what came later, anything may be
missing: a commit without its files, a commit of zeros, a gap in the numbers. Such a version and all after it are moved
out of the log. Their rows come again from the transaction log, or with a new copy.

A history may begin after version 0, and older versions may be missing in it: those that were not kept. What is left is
read from a checkpoint on, and a checkpoint counts only if it is whole.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath

from tailrace.errors import DefiniteError
from tailrace.lake.delta.file_names import last_part, with_checksums
from tailrace.lake.delta.log._whole_files import has_parquet_end, is_whole, is_whole_rows
from tailrace.lake.delta.log.contents import read_contents
from tailrace.lake.delta.log.versions import LAST_CHECKPOINT, CommitChanges, CommitLog, number_of

THREADS = 8


def recover(log: CommitLog, trusted: int | None, aside: Path) -> list[int]:
    """Move what is not whole into a new folder in `aside`. Returns the versions that lost a file to it.

    `trusted` is a version that was made durable: it and those before are looked at only as far as that costs little.
    """
    if not log.table.loses_unsynced:
        return []
    files = log.names()
    newest = max((number for name in files if (number := number_of(name)) is not None), default=None)
    checkpoints = log.checkpoints()
    if newest == trusted and _stands_well(log, checkpoints):
        versions = _reachable(log.versions(), checkpoints)
        if _newest_whole(log, versions, trusted) == trusted:
            return []
    out = _damaged_extras(log, files, checkpoints, trusted)
    checkpoints -= {number for name in out if (number := number_of(name)) is not None}
    kept = _newest_whole(log, _reachable(log.versions(), checkpoints), trusted)
    out |= {name for name in files if kept is None or (number_of(name) or 0) > kept}
    if not _is_good_hint(log, {number for number in checkpoints if kept is not None and number <= kept}):
        out.add(LAST_CHECKPOINT)
    return _move(log, set(with_checksums(out)) & set(files), aside)


def _damaged_extras(log: CommitLog, files: list[str], checkpoints: set[int], trusted: int | None) -> set[str]:
    """What is derived from commits and not whole. A version may be put together without it, if the commits are there.

    What is older than the trusted version was written long ago, but for the checkpoint that version stands on. If that
    one is damaged, none is trusted.
    """
    standing = max((number for number in checkpoints if trusted is not None and number <= trusted), default=None)
    extras = {name: number for name in files if (number := _extra(name)) is not None}
    new = {name for name, number in extras.items() if trusted is None or number > trusted or number == standing}
    damaged = {name for name in new if not is_whole(log.table, name)}
    if any(extras[name] == standing for name in damaged):
        damaged |= {name for name in extras.keys() - new if not is_whole(log.table, name)}
    return damaged


def _extra(name: str) -> int | None:
    """The version of a file that is derived from commits; None for any other."""
    is_derived = not last_part(name).startswith(".") and not name.endswith(".json")
    return number_of(name) if is_derived else None


def _stands_well(log: CommitLog, checkpoints: set[int]) -> bool:
    """Whether the newest checkpoint, and what points to it, look whole. Every byte of it is read when it is used."""
    newest = log.table.look(log.checkpoint_file(max(checkpoints, default=0)))
    is_good = newest is None or has_parquet_end(log.table, newest.name, newest.bytes)
    return is_good and _is_good_hint(log, checkpoints)


def _reachable(versions: list[int], checkpoints: set[int]) -> list[int]:
    """The versions that can be put together: from the very first on, or from a checkpoint on."""
    found: list[int] = []
    for version in versions:
        if version == 0 or version in checkpoints or (found and version == found[-1] + 1):
            found.append(version)
    return found


def _newest_whole(log: CommitLog, versions: list[int], trusted: int | None) -> int | None:
    """The newest version whose files are all whole. None is missing between it and the trusted one or, where that does
    not count, between it and the first version or checkpoint from which it is put together."""
    if trusted is not None and trusted in versions:
        found = _last_whole(log, _dense(versions, trusted), trusted)
        if found is not None:
            return found
        versions = [version for version in versions if version < trusted]
    for first in reversed([each for each in versions if each - 1 not in set(versions)]):
        damaged = _damaged_at(log, first, trusted) if first else set()
        found = None if damaged is None else _last_whole(log, _dense(versions, first), trusted, damaged)
        if found is not None:
            return found
    return None


def _damaged_at(log: CommitLog, version: int, trusted: int | None) -> set[str] | None:
    """Which files of a version that a checkpoint has are not whole; None if it is the checkpoint."""
    try:
        contents = read_contents(log, at=version)
    except (DefiniteError, OSError):
        return None
    files = [log.rows_file(add) for add in contents.files.values()] if contents else []
    check = partial(is_whole_rows, log.table, to_the_end=trusted is None or version > trusted)
    with ThreadPoolExecutor(THREADS) as pool:
        return {rows.name for rows, fine in zip(files, pool.map(check, files), strict=True) if not fine}


def _dense(versions: list[int], first: int) -> Iterator[int]:
    """From `first` up to the first that is missing."""
    for number, version in enumerate(versions[versions.index(first) :], first):
        if number != version:
            return
        yield version


def _last_whole(
    log: CommitLog, versions: Iterable[int], trusted: int | None, damaged: Collection[str] = ()
) -> int | None:
    """Plays commits back. A damaged file counts until a later version no longer needs it."""
    found: int | None = None
    damaged = set(damaged)
    with ThreadPoolExecutor(THREADS) as pool:
        for version in versions:
            commit = _read(log, version)
            if commit is None:
                break
            check = partial(is_whole_rows, log.table, to_the_end=trusted is None or version > trusted)
            are_whole = pool.map(check, commit.added)
            damaged -= commit.removed
            damaged |= {rows.name for rows, fine in zip(commit.added, are_whole, strict=True) if not fine}
            if not damaged:
                found = version
    return found


def _read(log: CommitLog, version: int) -> CommitChanges | None:
    """None for a damaged one."""
    try:
        return log.read(version) if is_whole(log.table, log.commit_file(version)) else None
    except DefiniteError:
        return None


def _is_good_hint(log: CommitLog, checkpoints: set[int]) -> bool:
    """Whether `_last_checkpoint` names one that is there."""
    if log.table.look(LAST_CHECKPOINT) is None:
        return True
    is_good = is_whole(log.table, LAST_CHECKPOINT)
    return is_good and json.loads(log.table.get(LAST_CHECKPOINT)).get("version") in checkpoints


def _move(log: CommitLog, names: set[str], aside: Path) -> list[int]:
    """The newest first: dying in between leaves a log as it could have been found. A hint to what goes, before all."""
    if not names:
        return []
    order = {name: (number_of(name) is None, number_of(name) or 0, PurePosixPath(name).suffix) for name in names}
    log.table.set_aside(sorted(names, key=lambda name: order[name], reverse=True), aside)
    return sorted({number for name in names if (number := number_of(name)) is not None})
