"""Postgres in words: what people write who configure a source of this kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.source.door.words import GivenProperties, SourceWords
from tailrace.source.postgres.words.options import OPTIONS, PHRASES
from tailrace.source.postgres.words.properties import CLASSES, PROPERTIES

WHOLE_ADDRESS = "database.dsn"
CONNECTION = {
    "database.hostname": "host",
    "database.port": "port",
    "database.user": "user",
    "database.password": "password",
    "database.dbname": "dbname",
    "database.sslmode": "sslmode",
    "database.sslcert": "sslcert",
    "database.sslkey": "sslkey",
    "database.sslpassword": "sslpassword",
    "database.sslrootcert": "sslrootcert",
}
"""What libpq calls each part of a connection."""
_PROPERTIES = {part: key for key, part in CONNECTION.items()}
_HOST_AND_PORT = re.compile(r"(?:\[(?P<bracketed>[^\]]+)\]|(?P<host>[^:,\s/\[\]]+))(?::(?P<port>[0-9]+))?")
_NEEDED = ("database.hostname", "database.user", "database.dbname")
_DEBEZIUM_SLOT, _DEBEZIUM_PUBLICATION = "debezium", "dbz_publication"
"""What a Debezium connector uses that names no others."""


class PostgresWords(SourceWords):
    """Holds nothing: one serves everyone."""

    kind = "postgres"
    name = "Postgres"
    classes = CLASSES
    schemes = ("postgresql", "postgres")
    example_dsn = PHRASES["example"]
    properties = PROPERTIES
    whole_address = WHOLE_ADDRESS
    password = "database.password"
    destination = (
        "database.hostname",
        "database.port",
        "database.user",
        "database.sslmode",
        "database.sslrootcert",
        "database.sslcert",
        "database.sslkey",
    )
    reservation = "slot.name"
    sql_names = ("postgres", "postgresql")
    clauses: Mapping[str, str] = {
        "host": "database.hostname",
        "port": "database.port",
        "database": "database.dbname",
        "user": "database.user",
        "password": "database.password",
        "ssl mode": "database.sslmode",
        "publication": "publication.name",
        "slot": "slot.name",
    }
    default_namespace = "public"
    options = OPTIONS
    leftover = "slot"
    phrases: Mapping[str, str] = PHRASES

    def dsn(self, given: GivenProperties) -> str:
        parts = {key: value for key in CONNECTION if (value := given.text(key)) is not None}
        whole = given.text(WHOLE_ADDRESS)
        if whole is not None:
            for key in parts:
                given.refuse(key, f"is part of {WHOLE_ADDRESS} already: give one of the two")
            return whole
        if given.has_problem(WHOLE_ADDRESS):
            return ""
        for key in _NEEDED:
            if key not in parts:
                given.require(key, f"required (or set {WHOLE_ADDRESS})")
        return " ".join(f"{CONNECTION[key]}={_quoted(value)}" for key, value in parts.items())

    def arguments(self, given: GivenProperties) -> dict[str, Any]:
        return {
            "slot": _slot(given),
            "publication": _publication(given),
            "append_only": _append_only(given),
            "as_text": given.items("columns.as.text"),
            "generated": given.is_on("columns.generated"),
            "stream": {
                "two_phase": given.is_on("stream.two.phase"),
                "origin": given.text("stream.origin") or "any",
                "failover": given.is_on("slot.failover"),
            },
        }

    def address(self, text: str) -> dict[str, str]:
        return _address_properties(text)

    def adopting(self, arguments: Mapping[str, Any], *, is_new: bool) -> dict[str, Any]:
        named = {name: value for name, value in arguments.items() if value is not None}
        return {"slot": _DEBEZIUM_SLOT, "publication": _DEBEZIUM_PUBLICATION if is_new else None} | named

    def require_adoptable(self, arguments: Mapping[str, Any]) -> None:
        if arguments.get("slot") is None:
            raise DefiniteError("the configuration names no slot to take over", f'"slot.name": "{_DEBEZIUM_SLOT}"')


WORDS: SourceWords = PostgresWords()


def _quoted(value: str) -> str:
    """As libpq reads it in `key=value` pairs: any character may be in it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _slot(given: GivenProperties) -> str | None:
    name = given.text("slot.name")
    if name is not None and not re.fullmatch("[a-z0-9_]{1,63}", name):
        given.refuse("slot.name", "may have up to 63 lowercase letters, digits and underscores")
    return name


def _publication(given: GivenProperties) -> str | None:
    key = "publication.autocreate.mode"
    name, mode = given.text("publication.name"), given.text(key)
    if name is None and mode == "disabled":
        given.require("publication.name", f"missing: {key} is disabled, so name the one that is there")
    if name is None and mode == "all_tables":
        given.warn(key, "a publication of the tables that are copied is made")
    if name is not None and mode in ("all_tables", "filtered"):
        given.warn(key, "publication.name is used as it is: it is neither made nor altered")
    return name


def _append_only(given: GivenProperties) -> list[str]:
    key = "append.only.tables"
    if given.items(key) and given.text("publication.name") is not None:
        given.refuse(key, "not with publication.name: tables without a key need a publication of their own")
    return given.table_patterns(key)


def _address_properties(text: str) -> dict[str, str]:
    """Of a host, `host:port`, libpq's `key=value` pairs, or a `postgresql://` address. What properties can say becomes
    properties, so that only the password is a secret and the rest can be shown. Any other text is kept whole."""
    if "=" in text or "://" in text:
        return _of_dsn(text)
    address = _HOST_AND_PORT.fullmatch(text)
    if address is None:
        return {WHOLE_ADDRESS if "," in text else _PROPERTIES["host"]: text}
    parts = {"host": address["bracketed"] or address["host"], "port": address["port"]}
    return {_PROPERTIES[part]: value for part, value in parts.items() if value}


def _of_dsn(text: str) -> dict[str, str]:
    # The driver is loaded only where an address is taken apart.
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = {part: str(value) for part, value in conninfo_to_dict(text).items() if value}
    except psycopg.ProgrammingError:
        return {WHOLE_ADDRESS: text}
    is_more = not parts.keys() <= _PROPERTIES.keys() or "," in parts.get("host", "")
    return {WHOLE_ADDRESS: text} if is_more else {_PROPERTIES[part]: value for part, value in parts.items()}
