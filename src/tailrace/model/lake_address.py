"""Where a lake lies: a folder that this machine sees, or a place in a bucket. Parsed once, from what a person types.

    ./shop, /data/shop                           a folder
    s3://BUCKET/NAME                             Amazon S3, and stores that speak its language
    gs://BUCKET/NAME                             Google Cloud Storage
    abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME   Azure Data Lake Storage

What has no scheme is a folder, whatever it is called: `./s3:` is one too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tailrace.errors import DefiniteError

SCHEMES = {
    "s3": "s3://BUCKET/NAME",
    "gs": "gs://BUCKET/NAME",
    "abfss": "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME",
}
"""Of buckets, each with how such an address is written."""
_OTHER_NAMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
"""What other programs write, and what it is called here."""
_FORMS = f"a folder, or {', '.join(SCHEMES.values())}"
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CONTAINER = re.compile(r"[A-Za-z0-9$][A-Za-z0-9-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_STEP = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.=-]*")


@dataclass(frozen=True)
class BucketLake:
    """A place in a bucket, with how its store is reached. As a text it is its address, and nothing secret."""

    address: str
    """`s3://bucket/shop`, without a slash at the end."""
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The store's own settings, which may be secrets: `endpoint`, `region`, `secret_access_key`."""
    home: Path | None = None
    """The local folder of whoever writes the lake; None for the one that follows from the address."""

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rpartition("/")[2]


LakeAddress = Path | BucketLake
"""A folder is a path. Nothing of it is looked at."""


def parse_lake(
    given: str | LakeAddress, options: Iterable[tuple[str, str]] = (), home: Path | None = None
) -> LakeAddress:
    """What a person wrote. A definite error for what is neither a folder nor a bucket that we know."""
    url = _URL.fullmatch(given) if isinstance(given, str) else None
    if url is None:
        folder = given if isinstance(given, BucketLake) else Path(given)
        if isinstance(folder, Path):
            _require_none_for_a_folder(folder, tuple(options), home)
        return folder
    scheme, rest = url["scheme"].lower(), url["rest"]
    if scheme not in SCHEMES:
        raise _unknown(scheme, rest)
    bucket, _, name = rest.rstrip("/").partition("/")
    form = _CONTAINER if scheme == "abfss" else _BUCKET
    if form.fullmatch(bucket) is None or not all(map(_STEP.fullmatch, name.split("/"))):
        # What it has instead may be a password.
        raise DefiniteError(f"this {scheme}:// is no address of a lake", f"write it as {SCHEMES[scheme]}")
    return BucketLake(f"{scheme}://{bucket}/{name}", tuple(options), home)


def _require_none_for_a_folder(folder: Path, options: tuple[tuple[str, str], ...], home: Path | None) -> None:
    if options:
        raise DefiniteError(f"lake {folder} is a folder: it has no storage options", "leave them out")
    if home is not None:
        raise DefiniteError(f"lake {folder} is a folder, and has its home inside", "leave the home out")


def _unknown(scheme: str, rest: str) -> DefiniteError:
    if scheme == "file":
        return DefiniteError("a lake's folder is written without file://", f"write {rest or 'its path'}")
    message = f"no lake can lie at {scheme}://"
    if scheme in _OTHER_NAMES:
        return DefiniteError(message, f"write it as {SCHEMES[_OTHER_NAMES[scheme]]}")
    return DefiniteError(message, f"it can be {_FORMS}")
