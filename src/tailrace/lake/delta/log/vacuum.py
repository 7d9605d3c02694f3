"""Deleting what no kept version of a Delta table needs: files of rows, deletion vectors, key indexes, commits.

    needed versions, each with a checkpoint of its own │ the last hour, all of it, from a checkpoint on
    _delta_log   12  ·  ·  ·  77  ·  ·  ·  ·  140  ·  · │ 160 161 162 163 … newest

Of the past only versions stay that a cut names; what lies between them is deleted, commits too. A reader that asks for
a version that is gone is told so by whoever reads Delta, because its commits are not dense.

Order: checkpoints of what stays are durable, files go, then commits. Dying in between leaves files that the next time
deletes. The caller has made sure that no cut names what goes.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tailrace.failpoint import failpoint
from tailrace.lake.delta.log.checkpoint import COMMITS_MAX, checkpoint, has_checkpoint, point_to
from tailrace.lake.delta.log.contents import Contents, read_contents
from tailrace.lake.delta.log.versions import CommitLog, checksums_of, number_of
from tailrace.lake.delta.rows.deletion_vectors import files_of, located, vector_of
from tailrace.lake.delta.rows.locator import INDEX_FOLDER
from tailrace.lake.door import Pruned, Wanted

_ROWS_OR_VECTORS = re.compile(r"[^._].*\.parquet|deletion_vector_.*\.bin")
_RANDOM_FOLDER = re.compile(r"[A-Za-z0-9]{2}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(week|day|hour|minute|second|millisecond|microsecond)s?")
_SECONDS = {
    "week": 604800.0,
    "day": 86400.0,
    "hour": 3600.0,
    "minute": 60.0,
    "second": 1.0,
    "millisecond": 1e-3,
    "microsecond": 1e-6,
}


@dataclass(frozen=True)
class _Plan:
    """What stays of a table's past."""

    past: frozenset[int]
    """Versions that are needed and older than the window; each gets a checkpoint."""
    begin: int
    """The first commit of the rest, which is dense: a checkpoint is there, or will be."""
    commits: tuple[int, ...]
    """Commits that go."""
    files: tuple[Path, ...]
    """What goes of the table's files."""
    is_settled: bool


def prune(log: CommitLog, contents: Contents, wanted: Wanted) -> tuple[Pruned, Contents]:
    """Delete, and say what; with the contents that know of no deleted file."""
    before = _files_in(log.table)
    if contents.foreign is not None:
        # The commits say who changed the table; it is about to be copied again.
        return Pruned(len(before), is_settled=True), contents
    plan = _plan(log, contents, wanted, before)
    indexes = _dead_indexes(log.table, contents, wanted)
    if wanted.dry_run:
        return _counted(log, plan, before, indexes), contents
    _keep(log, contents, plan)
    result = _counted(log, plan, before, indexes)
    _delete([*plan.files, *indexes])
    for folder in {path.parent for path in plan.files} - {log.table}:
        with suppress(OSError):
            # Only where nothing is left in it.
            folder.rmdir()
    failpoint("delta.prune.files")
    _delete_commits(log, plan, wanted)
    gone = set(plan.files)
    left = {file: action for file, action in contents.removed.items() if file not in gone and file.exists()}
    return result, replace(contents, removed=left)


def _plan(log: CommitLog, contents: Contents, wanted: Wanted, present: dict[Path, Any]) -> _Plan:
    versions, checkpoints = _dense_end(log.versions(), contents.version), log.checkpoints()
    commits_until = min(wanted.until, _own_limit(contents, "delta.logRetentionDuration"))
    floor, is_quiet = _first_after(log, versions, commits_until)
    bases = sorted(number for number in checkpoints | {0} if versions[0] <= number <= floor)
    readable = checkpoints | set(range(bases[0], floor) if bases else ())
    past = frozenset(number for number in wanted.versions if number < floor and number in readable)
    begin = floor if not bases or floor - bases[-1] > COMMITS_MAX or bases[-1] not in checkpoints else bases[-1]
    commits = tuple(number for number in log.versions() if number < begin and number not in past)
    files = tuple(_dead(log, contents, wanted, past, present))
    return _Plan(past, begin, commits, files, is_quiet and not past)


def _dense_end(versions: list[int], newest: int) -> list[int]:
    """The versions up to the newest between which none is missing."""
    known, first = set(versions), newest
    while first - 1 in known:
        first -= 1
    return list(range(first, newest + 1))


def _first_after(log: CommitLog, versions: list[int], until: float) -> tuple[int, bool]:
    """The first version that was made after a time; the newest one where none was, which is told."""
    number = bisect_right(versions, until, key=lambda version: log.commit_file(version).stat().st_mtime)
    return versions[min(number, len(versions) - 1)], number == len(versions)


def _own_limit(contents: Contents, name: str) -> float:
    """Before which time a property that a user gave the table lets things go."""
    text = contents.metadata.configuration.get(name)
    if text is None:
        return float("inf")
    found = _DURATION.findall(text.lower())
    # What we cannot read may mean for ever.
    return time.time() - sum(float(count) * _SECONDS[unit] for count, unit in found) if found else 0.0


def _dead(
    log: CommitLog, contents: Contents, wanted: Wanted, past: Iterable[int], present: dict[Path, Any]
) -> Iterator[Path]:
    """Files that no kept version has. One that was removed since `until` is part of a younger version; one that no
    action names may be about to become part of one."""
    live = {file for add in contents.files.values() for file in files_of(log.table, add)}
    until = min(wanted.until, _own_limit(contents, "delta.deletedFileRetentionDuration"))
    candidates = set()
    for file, found in present.items():
        action = contents.removed.get(file)
        went, limit = (action.get("deletionTimestamp") or 0) / 1000 if action else found.st_mtime, until
        if action is None:
            limit = min(until, wanted.strangers_until)
        if file not in live and went <= limit:
            candidates.add(file)
    for version in past if candidates else ():
        candidates -= _named(log, version)
    yield from candidates


def _named(log: CommitLog, version: int) -> set[Path]:
    """The files of an old version. Only the columns that say so are read."""
    path = log.checkpoint_file(version)
    if not path.exists():
        found = read_contents(log, at=version)
        return {file for add in found.files.values() for file in files_of(log.table, add)} if found else set()
    vector = "add.deletionVector"
    columns = ["add.path", f"{vector}.storageType", f"{vector}.pathOrInlineDv"]
    adds = pq.ParquetFile(path).read(columns=columns).column("add").combine_chunks()
    vectors = adds.field("deletionVector")
    # Many files of rows have their vectors in one file.
    kinds = {*zip(vectors.field("storageType").to_pylist(), vectors.field("pathOrInlineDv").to_pylist(), strict=True)}
    named = [_vector_file(log.table, kind, text) for kind, text in kinds if kind is not None]
    return {*(located(log.table, text) for text in adds.field("path").drop_null().to_pylist()), *filter(None, named)}


def _vector_file(table: Path, kind: str, text: str) -> Path | None:
    found = vector_of(table, {"deletionVector": {"storageType": kind, "pathOrInlineDv": text, "sizeInBytes": 0}})
    return found.path if found else None


def _keep(log: CommitLog, contents: Contents, plan: _Plan) -> None:
    """Checkpoints for what stays."""
    for version in sorted({*plan.past, plan.begin} - {0}):
        if has_checkpoint(log, version):
            continue
        found = contents if version == contents.version else read_contents(log, at=version)
        assert found is not None
        checkpoint(log, found)
    if plan.begin:
        point_to(log, plan.begin)


def _delete_commits(log: CommitLog, plan: _Plan, wanted: Wanted) -> None:
    """With everything that belongs to them, and what commits that were never made have left."""
    for name in sorted(log.names()):
        number, path = number_of(name), log.folder / name
        if name.endswith(".tmp"):
            if path.stat().st_mtime < wanted.strangers_until:
                path.unlink(missing_ok=True)
        elif number is not None and number < plan.begin and number not in plan.past:
            _delete([path])
            if path.suffix == ".json":
                failpoint("delta.prune.commit")


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        # First: a file that is given this name later must not be judged by them.
        checksums_of(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def _files_in(table: Path) -> dict[Path, Any]:
    """Ours lie in the table's folder, those that Delta writes itself in folders of two letters there."""
    folders = [table, *(path for path in table.iterdir() if _RANDOM_FOLDER.fullmatch(path.name) and path.is_dir())]
    found = (path for folder in folders for path in folder.iterdir() if _ROWS_OR_VECTORS.fullmatch(path.name))
    return {path: path.stat() for path in found}


def _dead_indexes(table: Path, contents: Contents, wanted: Wanted) -> list[Path]:
    """Key indexes of files that the newest version does not have, and unfinished ones."""
    live = {Path(add["path"]).name for add in contents.files.values()}
    folder = table / INDEX_FOLDER
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        is_draft = path.suffix == ".new"
        if path.stat().st_mtime < wanted.strangers_until if is_draft else path.stem not in live:
            found.append(path)
    return found


def _counted(log: CommitLog, plan: _Plan, before: dict[Path, Any], indexes: list[Path]) -> Pruned:
    commits = [log.commit_file(number) for number in plan.commits]
    freed = sum(before[path].st_size for path in plan.files)
    freed += sum(path.stat().st_size for path in (*indexes, *commits) if path.exists())
    return Pruned(len(before), len(plan.files), freed, len(commits), plan.is_settled)
