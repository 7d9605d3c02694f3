"""The address of a database as one text, and the properties that say the same.

What can be said in properties becomes properties, so that only the password is a secret and the rest can be shown. Any
other text that libpq understands is kept whole, as `database.dsn`, and is a secret as a whole.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

DSN, HOSTNAME, PORT = "database.dsn", "database.hostname", "database.port"
PROPERTIES = {
    "host": HOSTNAME,
    "port": PORT,
    "dbname": "database.dbname",
    "user": "database.user",
    "password": "database.password",
    "sslmode": "database.sslmode",
    "sslcert": "database.sslcert",
    "sslkey": "database.sslkey",
    "sslpassword": "database.sslpassword",
    "sslrootcert": "database.sslrootcert",
}
_PAIR = re.compile(
    r"\s*(?P<key>\w+)\s*=\s*(?:'(?P<quoted>(?:[^'\\]|\\.)*+)'(?=\s|$)|(?P<bare>(?!')(?:[^\\\s]|\\.)*+))\s*"
)
_URI = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?]*)(?::(?P<password>[^@/?]*))?@)?"
    r"(?P<host>[^:/,@?\[\]]+|\[[^\],]+\])(?::(?P<port>[0-9]+))?(?:/(?P<dbname>[^?/]*))?(?:\?(?P<more>.*))?",
    re.DOTALL,
)
_HOST_AND_PORT = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<host>[^:,\s/\[\]]+))(?::(?P<port>[0-9]+))?")


def address_properties(text: str) -> dict[str, str]:
    """Of a host, `host:port`, libpq's `key=value` pairs, or a `postgresql://` address."""
    parts: dict[str, str] | None
    if "://" in text:
        parts = _uri_parts(text)
    elif "=" in text:
        parts = _pairs(text)
    else:
        found = _HOST_AND_PORT.fullmatch(text)
        if found is None:
            return {DSN if "," in text else HOSTNAME: text}
        parts = {"host": found["bracketed"] or found["host"], "port": found["port"] or ""}
    if parts is None or not parts.keys() <= PROPERTIES.keys():
        return {DSN: text}
    return {PROPERTIES[key]: value for key, value in parts.items() if value}


def _pairs(text: str) -> dict[str, str] | None:
    """None for what is no such text, or says something twice."""
    parts: dict[str, str] = {}
    end = 0
    while end < len(text):
        found = _PAIR.match(text, end)
        if found is None or found["key"] in parts:
            return None
        written = found["bare"] if found["quoted"] is None else found["quoted"]
        parts[found["key"]] = re.sub(r"\\(.)", r"\1", written, flags=re.DOTALL)
        end = found.end()
    return parts


def _uri_parts(text: str) -> dict[str, str] | None:
    found = _URI.fullmatch(text)
    if found is None:
        return None
    parts = {key: unquote(value).strip("[]") if key == "host" else unquote(value) for key, value in _given(found)}
    for each in filter(None, (found["more"] or "").split("&")):
        key, is_pair, value = each.partition("=")
        if not is_pair or key in parts:
            return None
        parts[key] = unquote(value)
    return parts


def _given(found: re.Match[str]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in found.groupdict().items() if value is not None and key != "more"]
