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
from dataclasses import dataclass, replace

import pyarrow.parquet as pq

from tailrace.failpoint import failpoint
from tailrace.lake.delta.file_names import files_in, last_part, name_of, with_checksums
from tailrace.lake.delta.log.checkpoint import COMMITS_MAX, checkpoint, has_checkpoint, point_to
from tailrace.lake.delta.log.contents import Contents, read_contents
from tailrace.lake.delta.log.versions import CommitLog, number_of
from tailrace.lake.delta.rows.deletion_vectors import files_of, vector_of
from tailrace.lake.delta.rows.locator import INDEX_FOLDER
from tailrace.lake.door import Pruned, Wanted
from tailrace.lake.key_index import SavedIndex, saved_indexes
from tailrace.storage.door import Storage, StoredFile

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
    files: tuple[str, ...]
    """What goes of the table's files."""
    is_settled: bool


def prune(log: CommitLog, contents: Contents, wanted: Wanted) -> tuple[Pruned, Contents]:
    """Delete, and say what; with the contents that know of no deleted file."""
    before = files_in(log.table)
    if contents.foreign is not None:
        # The commits say who changed the table; it is about to be copied again.
        return Pruned(len(before), is_settled=True), contents
    plan = _plan(log, contents, wanted, before)
    indexes = _dead_indexes(log.table, contents, wanted)
    if wanted.dry_run:
        return _counted(log, plan, before, indexes), contents
    _keep(log, contents, plan)
    result = _counted(log, plan, before, indexes)
    _delete(log.table, plan.files)
    for index in indexes:
        index.delete()
    failpoint("delta.prune.files")
    _delete_commits(log, plan, wanted)
    gone = set(plan.files)
    kept = {name: action for name, action in contents.removed.items() if name not in gone}
    left = {name: action for name, action in kept.items() if log.table.look(name) is not None}
    return result, replace(contents, removed=left)


def _plan(log: CommitLog, contents: Contents, wanted: Wanted, present: dict[str, StoredFile]) -> _Plan:
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
    number = bisect_right(versions, until, key=lambda version: _changed(log.table, log.commit_file(version)))
    return versions[min(number, len(versions) - 1)], number == len(versions)


def _changed(table: Storage, name: str) -> float:
    """When a file was written, in seconds since 1970; for one that is gone, at no time that is asked about."""
    found = table.look(name)
    return found.changed_ns / 1e9 if found else float("inf")


def _own_limit(contents: Contents, name: str) -> float:
    """Before which time a property that a user gave the table lets things go."""
    text = contents.metadata.configuration.get(name)
    if text is None:
        return float("inf")
    found = _DURATION.findall(text.lower())
    # What we cannot read may mean for ever.
    return time.time() - sum(float(count) * _SECONDS[unit] for count, unit in found) if found else 0.0


def _dead(
    log: CommitLog, contents: Contents, wanted: Wanted, past: Iterable[int], present: dict[str, StoredFile]
) -> Iterator[str]:
    """Files that no kept version has. One that was removed since `until` is part of a younger version; one that no
    action names may be about to become part of one."""
    live = {file for add in contents.files.values() for file in files_of(log.table, add)}
    until = min(wanted.until, _own_limit(contents, "delta.deletedFileRetentionDuration"))
    candidates = set()
    for name, found in present.items():
        action = contents.removed.get(name)
        went, limit = (action.get("deletionTimestamp") or 0) / 1000 if action else found.changed_ns / 1e9, until
        if action is None:
            limit = min(until, wanted.strangers_until)
        if name not in live and went <= limit:
            candidates.add(name)
    for version in past if candidates else ():
        candidates -= _files_at(log, version)
    yield from candidates


def _files_at(log: CommitLog, version: int) -> set[str]:
    """The files of an old version. Only the columns that say so are read."""
    name = log.checkpoint_file(version)
    if log.table.look(name) is None:
        found = read_contents(log, at=version)
        return {file for add in found.files.values() for file in files_of(log.table, add)} if found else set()
    vector = "add.deletionVector"
    columns = ["add.path", f"{vector}.storageType", f"{vector}.pathOrInlineDv"]
    with log.table.open(name) as file:
        adds = pq.ParquetFile(file).read(columns=columns).column("add").combine_chunks()
    vectors = adds.field("deletionVector")
    # Many files of rows have their vectors in one file.
    kinds = {*zip(vectors.field("storageType").to_pylist(), vectors.field("pathOrInlineDv").to_pylist(), strict=True)}
    named = [_vector_file(log.table, kind, text) for kind, text in kinds if kind is not None]
    return {*(name_of(log.table, text) for text in adds.field("path").drop_null().to_pylist()), *filter(None, named)}


def _vector_file(table: Storage, kind: str, text: str) -> str | None:
    found = vector_of(table, {"deletionVector": {"storageType": kind, "pathOrInlineDv": text, "sizeInBytes": 0}})
    return found.name if found else None


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
    for name in log.names():
        number = number_of(name)
        if name.endswith(".tmp"):
            if _changed(log.table, name) < wanted.strangers_until:
                log.table.delete([name])
        elif number is not None and number < plan.begin and number not in plan.past:
            _delete(log.table, [name])
            if name.endswith(".json"):
                failpoint("delta.prune.commit")


def _delete(table: Storage, names: Iterable[str]) -> None:
    # Checksums go first: a file that is given this name later must not be judged by them.
    table.delete(reversed([*with_checksums(names)]))


def _dead_indexes(table: Storage, contents: Contents, wanted: Wanted) -> list[SavedIndex]:
    """Key indexes of files that the newest version does not have, and unfinished ones."""
    live = {last_part(add["path"]) for add in contents.files.values()}
    return [
        index
        for index in saved_indexes(table.cache / INDEX_FOLDER)
        if (index.changed < wanted.strangers_until if index.rows_file is None else index.rows_file not in live)
    ]


def _counted(log: CommitLog, plan: _Plan, before: dict[str, StoredFile], indexes: list[SavedIndex]) -> Pruned:
    commits = [log.table.look(log.commit_file(number)) for number in plan.commits]
    freed = sum(before[name].bytes for name in plan.files) + sum(index.bytes for index in indexes)
    freed += sum(found.bytes for found in commits if found)
    return Pruned(len(before), len(plan.files), freed, len(commits), plan.is_settled)
