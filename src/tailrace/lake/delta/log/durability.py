"""Making versions of a Delta table survive a power cut.

Delta closes its files and never syncs them: after a power cut the newest commit may be missing, empty or full of zeros,
and so may the files it names. Here everything that some versions consist of is synced, files first, then folders.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tailrace.files import sync
from tailrace.lake.delta.log.versions import CommitLog, number_of, with_checksums

THREADS = 8
"""A sync waits for the disk, which takes several at once."""


def make_durable(log: CommitLog, since: int | None) -> None:
    """Returns when every version after `since` (None: all) is on disk."""
    first = 0 if since is None else since + 1
    files = {log.folder / name for name in log.names() if (number := number_of(name)) is None or number >= first}
    for version in log.versions():
        if version >= first:
            files |= set(with_checksums(log.read(version).new_files))
    folders = {folder for file in files for folder in _folders_of(file, log.table)} | {log.table}
    if since is None:
        # The table's own folder, and its namespace's, may be as new as the table.
        folders |= set(log.table.parents[:2])
    with ThreadPoolExecutor(THREADS) as pool:
        for paths in (files, folders):
            list(pool.map(_sync, paths))


def _folders_of(file: Path, table: Path) -> list[Path]:
    """From the file's folder up to the table's."""
    return [folder for folder in file.parents if folder.is_relative_to(table)]


def _sync(path: Path) -> None:
    # A file of an older version may have been vacuumed since.
    with suppress(FileNotFoundError):
        sync(path)
