"""Where a bucket is and how it is reached: its URL, and the options that a person gives.

An option is one of obstore's own names for the kind of store (`region`, `access_key_id`, `account_name`), also with the
prefix that others know it by (`aws_region`), or one of its HTTP client's (`allow_http`, `timeout`). What no option says
comes from the environment, as obstore has it: the usual variables (`AWS_ACCESS_KEY_ID`, `AWS_REGION`,
`AWS_ENDPOINT_URL`), a web identity, the role of a container, the machine's own role.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tailrace.errors import DefiniteError
from tailrace.hidden import hide

KINDS = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "adl": "az", "azure": "az", "abfs": "abfs", "abfss": "abfss"}
"""What a URL begins with, and how we write it: others know no credentials for `s3a`."""
_PREFIX = re.compile(r"^(aws|google|azure)_")
_SECRET = re.compile(r"secret|token|password|_key(_|$)|sas|credential|^service_account", re.IGNORECASE)
_PUBLIC = {"access_key_id", "sse_kms_key_id", "sse_bucket_key_enabled"}
_CLIENT_OPTIONS = frozenset(
    [
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    ]
)
_ENDPOINTS = ("endpoint_url_s3", "endpoint_url", "endpoint", "base_url")
_ACCESS = (
    ("access_key_id", ("access_key_id",)),
    ("secret_access_key", ("secret_access_key",)),
    ("token", ("token", "session_token")),
    ("region", ("region", "default_region")),
)
"""What readers that others wrote need, and what it is called."""
_SEGMENT = re.compile(r"[^\x00-\x1f\x7f%?#\\]+")


@dataclass(frozen=True)
class BucketPlace:
    """One bucket. The options are in no text that it makes of itself."""

    scheme: str
    host: str
    """The bucket; for Azure the container, perhaps with its account."""
    options: tuple[tuple[str, str], ...] = field(repr=False)

    @classmethod
    def parse(cls, url: str, options: Mapping[str, str]) -> tuple[BucketPlace, str]:
        """The bucket of a URL, and the folder in it. A definite error for what is none. Hides the secrets among the
        options from every message of this process."""
        scheme, mark, rest = url.partition("://")
        host, _, folder = rest.partition("/")
        folder = folder.strip("/")
        if not mark or scheme.lower() not in KINDS or not host:
            raise DefiniteError(f"{url} is no bucket", "name one like s3://bucket/folder, gs://… or abfss://…")
        if any(part in (".", "..") or not _SEGMENT.fullmatch(part) for part in folder.split("/") if folder):
            raise DefiniteError(f"{url}: a folder has no name that a bucket can have", "name it in plain letters")
        given = _normal(options)
        place = cls(KINDS[scheme.lower()], host, tuple(sorted(given.items())))
        place.hide_secrets()
        return place, folder

    @property
    def root(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def bucket(self) -> str:
        """Its name alone."""
        return self.host.partition("@")[0]

    def hide_secrets(self) -> None:
        for name, value in self.options:
            if _SECRET.search(name) and name not in _PUBLIC:
                hide(value)

    @property
    def endpoint(self) -> str | None:
        """The address of the store, where it is not the provider's own."""
        given = dict(self.options)
        own = (given.get(name) for name in _ENDPOINTS)
        # obstore takes them in this order.
        environment = (os.environ.get(f"AWS_{name.upper()}") for name in _ENDPOINTS[:3] if self.scheme == "s3")
        return next(filter(None, (*own, *environment)), None)

    @property
    def access(self) -> dict[str, str]:
        """What reaches the store, given or from the environment, under one name each."""
        given = dict(self.options)
        found = {name: _first(given, os.environ if self.scheme == "s3" else {}, names) for name, names in _ACCESS}
        found |= {name: value for name, value in given.items() if name not in found}
        access = {name: value for name, value in found.items() if value}
        if self.endpoint is not None:
            access["endpoint"] = self.endpoint
        for name, value in access.items():
            if _SECRET.search(name) and name not in _PUBLIC:
                hide(value)
        return access

    @property
    def config(self) -> dict[str, str]:
        """What obstore is told of the store."""
        return {name: value for name, value in self.options if name not in _CLIENT_OPTIONS}

    @property
    def client_options(self) -> dict[str, str]:
        """What obstore's HTTP client is told."""
        chosen = {name: value for name, value in self.options if name in _CLIENT_OPTIONS}
        if self.scheme == "s3" and "AWS_ALLOW_HTTP" in os.environ:
            chosen.setdefault("allow_http", os.environ["AWS_ALLOW_HTTP"])
        if (self.endpoint or "").startswith("http://"):
            # Whoever names the endpoint so has said that it may be.
            chosen.setdefault("allow_http", "true")
        return chosen


def _first(given: Mapping[str, str], environment: Mapping[str, str], names: Sequence[str]) -> str | None:
    """Under any of these names: what is given counts before what the environment has."""
    own = (given.get(name) for name in names)
    return next(filter(None, (*own, *(environment.get(f"AWS_{name.upper()}") for name in names))), None)


def options_of(given: Iterable[str]) -> dict[str, str]:
    """From texts like `KEY=VALUE`."""
    options = {}
    for text in given:
        name, mark, value = text.partition("=")
        if not mark or not name.strip():
            # The text may be a secret whose name was forgotten.
            raise DefiniteError("a storage option has no name", "write it as --storage-option KEY=VALUE")
        options[name.strip()] = value
    return options


def _normal(options: Mapping[str, str]) -> dict[str, str]:
    normal: dict[str, str] = {}
    for name, value in options.items():
        plain = _PREFIX.sub("", name.strip().lower().replace("-", "_"))
        if normal.setdefault(plain, value) != value:
            raise DefiniteError(f"the storage option {plain} is given twice", "leave one of them out")
    if "endpoint_url" in normal:
        # As the environment calls it; obstore knows it under the shorter name.
        normal.setdefault("endpoint", normal.pop("endpoint_url"))
    return normal
