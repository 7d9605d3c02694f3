"""Properties of every connector: its name and kind, and which tables."""

from __future__ import annotations

from tailrace.source.door.property import Importance, Property, Type, grouped, ignored, refused, supported

_HIGH, _MEDIUM = Importance.HIGH, Importance.MEDIUM
_EXPRESSIONS = "Regular expressions, each for a whole `schema.table`, in any case"


_NAME = supported("name", "The connector's name.", importance=_HIGH, required=True)
_PREFIX = supported(
    "topic.prefix",
    "What the source is called in offsets (`server`). No topic is made of it. Default: the connector's name.",
    importance=_MEDIUM,
)

_TABLES = (
    supported(
        "table.include.list",
        f"{_EXPRESSIONS}: the tables that are copied. Default: all. See [expressions](#expressions).",
        Type.LIST,
        importance=_HIGH,
    ),
    supported("table.exclude.list", f"{_EXPRESSIONS}: the tables that are left out.", Type.LIST, importance=_MEDIUM),
    supported(
        "schema.include.list", "The same for schemas: tables of others are left out.", Type.LIST, importance=_HIGH
    ),
    supported("schema.exclude.list", "Tables of these schemas are left out.", Type.LIST, importance=_MEDIUM),
    refused(
        "table.ignore.builtin",
        "Whether the server's own tables are left out.",
        "the server's own tables cannot be copied",
        Type.BOOLEAN,
        harmless=("true",),
    ),
    refused(
        "guardrail.collections.max",
        "How many tables there may be at most.",
        "the number of tables is not limited: name them in table.include.list",
        Type.INT,
        harmless=("0",),
    ),
    ignored("guardrail.collections.limit.action", "What to do above that.", "see guardrail.collections.max"),
)
TABLES = grouped("Tables", _TABLES)


def connector_properties(classes: tuple[str, ...], default: str | None) -> tuple[Property, ...]:
    """`classes` are the kinds of connectors that there are."""
    kind = supported(
        "connector.class", "Which kind of source.", Type.CLASS, values=classes, default=default, importance=_HIGH
    )
    return grouped("Connector", (_NAME, kind, _PREFIX))
