"""What a connection string says, as far as a person may see it.

A connection string is anything libpq understands: a URI or `key=value` pairs, with service files, `PG…` environment
variables and `.pgpass` as defaults. A mistyped one may have a part of the password where its host or database belongs.
Such a string is refused before any of it can get into a message.
"""

from __future__ import annotations

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from tailrace.errors import DefiniteError

_EXAMPLE = "it looks like postgresql://user:password@host:5432/database"
_ESCAPES = (
    "in a postgresql:// address write @ in a password as %40, / as %2F, : as %3A, ? as %3F, % as %25, space as %20"
)
_PORT = "5432"
_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")
_SCHEMES = ("postgresql", "postgres")
_TLS_NOT_REQUIRED = ("disable", "allow", "prefer")
LABEL_CHARACTERS_MAX, HOST_CHARACTERS_MAX = 63, 253


def parse(dsn: str) -> dict[str, str]:
    """What the string itself gives; a definite error, which repeats none of it, if libpq would misread it."""
    scheme, separator, rest = dsn.partition("://")
    if separator and scheme in _SCHEMES and _is_misread(rest):
        raise DefiniteError("the connection string has a character that must be escaped", _ESCAPES)
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    except psycopg.ProgrammingError:
        hint = _ESCAPES if separator else _EXAMPLE
        raise DefiniteError("that is not a Postgres connection string", hint) from None
    if not given.get("port", "").replace(",", "0").isdigit() and given.get("port"):
        raise DefiniteError("the port in the connection string is not a number", _ESCAPES if separator else _EXAMPLE)
    if not all(map(_is_name, given.get("host", "").split(","))):
        # Python would fail to encode it, with an error of its own.
        message = f"a host's name has parts of at most {LABEL_CHARACTERS_MAX} characters, and at most"
        raise DefiniteError(f"{message} {HOST_CHARACTERS_MAX} in all", "check the host in the connection string")
    return given


def _is_name(host: str) -> bool:
    """Whether it could be the name of a host, an address, or a socket's folder."""
    if host.startswith(("/", "@")):
        return True
    labels = host.removesuffix(".").split(".")
    if len(host) > HOST_CHARACTERS_MAX or any(len(label) > LABEL_CHARACTERS_MAX for label in labels):
        return False
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _is_misread(rest: str) -> bool:
    """libpq looks for the user's part before the first `@`, and only before the first `/`."""
    head, _, tail = rest.partition("@")
    return "@" in tail.partition("?")[0] or (head != rest and "/" in head and "?" not in head)


def describe(dsn: str) -> str:
    """Where the string leads, for a person: user, hosts, database; never a password."""
    given = parse(dsn)
    if "service" in given:
        # The service file has the rest, for libpq to read.
        known = [f"{name} {given[name]}" for name in ("user", "host", "port", "dbname") if given.get(name)]
        return ", ".join([f"service {given['service']}", *known])
    found = _with_defaults(given)
    user = found.get("user", "")
    hosts = found.get("host") or found.get("hostaddr") or ""
    places = ",".join(f"{_shown(host)}:{port}" for host, port in _places(hosts, found))
    return f"{user}@{places}/{found.get('dbname') or user}"


def servers(dsn: str) -> frozenset[str]:
    """The servers that the string may lead to, each in one spelling, whatever way it is written. This machine has one
    name; other names of one server count as several."""
    given = parse(dsn)
    if "service" in given:
        # Only libpq knows which server that is.
        return frozenset({f"service {given['service']}"})
    found = _with_defaults(given)
    places = _places(found.get("hostaddr") or found.get("host") or "", found)
    return frozenset(f"{'localhost' if host.lower() in _LOOPBACK else host.lower()}:{port}" for host, port in places)


def is_clear(dsn: str) -> bool:
    """Whether a password could travel over a network without TLS, and nothing says how the server may ask for it."""
    given = parse(dsn)
    if "service" in given:
        return False
    found = _with_defaults(given)
    hosts = (found.get("hostaddr") or found.get("host") or "").split(",")
    is_local = all(not host or host.startswith(("/", "@")) for host in hosts)
    return not is_local and found.get("sslmode", "prefer") in _TLS_NOT_REQUIRED and not found.get("require_auth")


def user_of(dsn: str) -> str:
    """The user that the string names, or else the one that libpq takes; empty where only a service file tells."""
    given = parse(dsn)
    return given.get("user") or ("" if "service" in given else _defaults().get("user", ""))


def _with_defaults(given: dict[str, str]) -> dict[str, str]:
    return _defaults() | {name: value for name, value in given.items() if value}


def _places(hosts: str, found: dict[str, str]) -> list[tuple[str, str]]:
    """Each host with its port."""
    names, ports = hosts.split(","), (found.get("port") or _PORT).split(",")
    ports = ports * len(names) if len(ports) == 1 else ports
    return [(name, port or _PORT) for name, port in zip(names, ports, strict=False)]


def _shown(host: str) -> str:
    if not host:
        return "local socket"
    return f"[{host}]" if ":" in host and not host.startswith("/") else host


def _defaults() -> dict[str, str]:
    """What the environment adds, PGSERVICE's file included."""
    found = {option.keyword.decode(): option.val for option in pq.Conninfo.get_defaults()}
    return {name: value.decode(errors="replace") for name, value in found.items() if value}
