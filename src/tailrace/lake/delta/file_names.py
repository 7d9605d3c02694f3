"""What files of a Delta table are called: names in actions, Hadoop's checksums, files that are the table's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from tailrace.storage.door import Storage, StoredFile

_ROWS_OR_VECTORS = re.compile(r"(?:[A-Za-z0-9]{2}/)?(?:[^._/][^/]*\.parquet|deletion_vector_[^/]*\.bin)")
_RANDOM_FOLDER = re.compile(r"[A-Za-z0-9]{2}/")


def name_of(table: Storage, text: str) -> str:
    """The name of a file that an action calls so: by a URL, relative to the table unless it begins at the root. A file
    in the table's folder has one name, however it is called."""
    path = unquote(urlsplit(text).path)
    if not path.startswith("/"):
        return str(PurePosixPath(path))
    own = table.address if table.address.startswith("/") else urlsplit(table.address).path
    return path.removeprefix(f"{own}/")


def last_part(name: str) -> str:
    """A name without its folders."""
    return name.rpartition("/")[2]


def checksums_of(name: str) -> str:
    """Where Hadoop keeps its checksums of a file."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}.{last}.crc"


def with_checksums(names: Iterable[str]) -> Iterator[str]:
    """These files and Hadoop's checksums of them, each after its file. They need not be there."""
    for name in names:
        yield from (name, checksums_of(name))


def files_in(table: Storage) -> dict[str, StoredFile]:
    """Files of rows and of deletion vectors, of any version or of none. Ours lie in the table's folder, those that
    Delta writes itself in folders of two letters there."""
    folders = ["", *(name[:-1] for name in table.names() if _RANDOM_FOLDER.fullmatch(name))]
    found = (file for folder in folders for file in table.list(folder))
    return {file.name: file for file in found if _ROWS_OR_VECTORS.fullmatch(file.name)}
