"""Making versions of a Delta table survive a power cut.

Delta closes its files and never syncs them: after a power cut the newest commit may be missing, empty or full of zeros,
and so may the files it names. Here everything that some versions consist of is synced.
"""

from __future__ import annotations

from tailrace.lake.delta.file_names import with_checksums
from tailrace.lake.delta.log.versions import CommitLog, number_of


def make_durable(log: CommitLog, since: int | None) -> None:
    """Returns when every version after `since` (None: all) survives a power cut."""
    if not log.table.loses_unsynced:
        return
    first = 0 if since is None else since + 1
    files = {name for name in log.names() if (number := number_of(name)) is None or number >= first}
    for version in log.versions():
        if version >= first:
            files.update(with_checksums(log.read(version).new_files))
    # The table's own folder, and its namespace's, may be as new as the table.
    log.table.sync(files, is_new=since is None)
