"""Orders: what signals ask for, checked, in Debezium's own JSON.

    execute-snapshot   {"data-collections": ["shop.orders", "shop\\.item.*"], "type": "incremental",
                        "additional-conditions": [{"data-collection": "shop.orders", "filter": "total > 10"}],
                        "surrogate-key": "number"}
    pause-snapshot     {"data-collections": […], "type": "incremental"}; both may be left out: everything pauses
    resume-snapshot    the same
    stop-snapshot      the same
    log                {"message": "…"}

Pure. Any text becomes an order or a reason that names the field and the rule; nothing is passed over in silence.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from tailrace.model.signal import DATA_CHARACTERS_MAX, ID_CHARACTERS_MAX, Arrival, Signal, new_id
from tailrace.model.table import TableId
from tailrace.model.table_pattern import ExpressionError, parse_expression

Kind = Literal["incremental", "blocking"]
PATTERN_CHARACTERS_MAX = 1000
SHOWN_CHARACTERS_MAX = 200
"""How much of a signal that cannot be read is kept."""
_REPEATS = re.compile(r"[*+{]")
ALL = ""
"""In place of a pattern: every table of the order."""


@dataclass(frozen=True)
class ExecuteSnapshot:
    """Copy tables."""

    tables: tuple[str, ...]
    """Names, or regular expressions for whole names: `namespace.table`."""
    kind: Kind
    conditions: Mapping[str, str]
    """By pattern, or for `ALL`: only rows for which this SQL is true."""
    surrogate_keys: Mapping[str, str]
    """By pattern, or for `ALL`: the column by which rows are ordered, in place of the key."""


@dataclass(frozen=True)
class PauseSnapshot:
    tables: tuple[str, ...]
    """Empty: all that are being copied."""
    kind: Kind


@dataclass(frozen=True)
class ResumeSnapshot:
    tables: tuple[str, ...]
    """Empty: all that are paused."""
    kind: Kind


@dataclass(frozen=True)
class StopSnapshot:
    tables: tuple[str, ...]
    """Empty: all that are being copied."""
    kind: Kind


@dataclass(frozen=True)
class Log:
    """Write a line into the connector's messages."""

    message: str


Order = ExecuteSnapshot | PauseSnapshot | ResumeSnapshot | StopSnapshot | Log


@dataclass(frozen=True)
class Rejection:
    """Why a signal is no order, for a person."""

    reason: str


def order_of(signal: Signal) -> Order | Rejection:
    """What the signal asks for. Never raises."""
    if (problem := _id_problem(signal.id)) is not None:
        return Rejection(problem)
    if signal.type not in _DATA:
        return Rejection(f"type: unknown {_printable(signal.type)!r}; known are {', '.join(TYPES)}")
    if len(signal.data) > DATA_CHARACTERS_MAX:
        return Rejection(f"data: must have at most {DATA_CHARACTERS_MAX:,} characters")
    data = _parsed(_DATA[signal.type], signal.data.strip() or "{}", "data")
    return data if isinstance(data, Rejection) else data.order(signal.type)


def judged(arrival: Arrival) -> Arrival:
    """The same, with the reason where it is no order. What is rejected is cut to what can be kept and shown."""
    signal, found = arrival.signal, order_of(arrival.signal)
    reason = arrival.reason or (found.reason if isinstance(found, Rejection) else None)
    if reason is None:
        return arrival
    id_ = signal.id if _id_problem(signal.id) is None else new_id()
    return Arrival(Signal(id_, _printable(signal.type), _printable(signal.data)), arrival.channel, reason)


def arrival_of(text: str, channel: str) -> Arrival:
    """One line of a file: {"id": …, "type": …, "data": {…}}. The id may be left out, and so may the data, which may
    also be JSON in a string. Never raises. Nothing is kept of a line that is no signal: it may be one of another file
    than was meant, with secrets in it."""
    found = _parsed(_Envelope, text, "line")
    if isinstance(found, Rejection):
        return Arrival(Signal(new_id(), ""), channel, found.reason)
    data = found.data if isinstance(found.data, str) else json.dumps(found.data) if found.data is not None else ""
    return Arrival(Signal(found.id or new_id(), found.type, data), channel)


@dataclass(frozen=True)
class ChosenTable:
    """A table that an order means, with what it says of this one."""

    table: TableId
    condition: str | None = None
    surrogate_key: str | None = None


@dataclass(frozen=True)
class MeantTables:
    """What the patterns of an order mean at this moment."""

    tables: tuple[ChosenTable, ...]
    unmatched: tuple[str, ...]
    """Patterns that match no table, each once. No error: the result of the signal names them."""


def choose(order: ExecuteSnapshot, tables: Sequence[TableId]) -> MeantTables:
    """The tables that an order means among these, by name."""
    chosen, unmatched = match(order.tables, tables)
    conditions, without_table = _assigned(order.conditions, chosen)
    keys, without_row = _assigned(order.surrogate_keys, chosen)
    return MeantTables(
        tuple(ChosenTable(table, conditions.get(table), keys.get(table)) for table in chosen),
        tuple(dict.fromkeys([*unmatched, *without_table, *without_row])),
    )


def match(patterns: Sequence[str], tables: Sequence[TableId]) -> tuple[list[TableId], list[str]]:
    """The tables that some pattern means, by name, and the patterns that mean none. A pattern that is a table's name
    means that table alone; any other is a regular expression for the whole name."""
    by_pattern = {pattern: _named(pattern, tables) or _matching(pattern, tables) for pattern in patterns}
    found = sorted({table for meant in by_pattern.values() for table in meant})
    return found, [pattern for pattern, meant in by_pattern.items() if not meant]


def _assigned(texts: Mapping[str, str], tables: Sequence[TableId]) -> tuple[dict[TableId, str], list[str]]:
    """Each table's text: that of its name, else of the first expression that matches, else the one for all."""
    names = [pattern for pattern in texts if _named(pattern, tables)]
    expressions = [pattern for pattern in texts if pattern != ALL and pattern not in names]
    found = dict.fromkeys(tables, texts[ALL]) if ALL in texts else {}
    for pattern in (*reversed(expressions), *names):
        found |= dict.fromkeys(match([pattern], tables)[0], texts[pattern])
    return found, [pattern for pattern in expressions if not _matching(pattern, tables)]


def _named(name: str, tables: Sequence[TableId]) -> list[TableId]:
    return [table for table in tables if name in _names(table)]


def _matching(pattern: str, tables: Sequence[TableId]) -> list[TableId]:
    expression = _compiled(pattern)
    return [table for table in tables if any(expression.fullmatch(name) for name in _names(table))]


def _names(table: TableId) -> tuple[str, str]:
    """Debezium knows no quotes."""
    return str(table), f"{table.namespace}.{table.name}"


def _compiled(pattern: str) -> re.Pattern[str]:
    with warnings.catch_warnings(action="ignore"):  # Of what a later Python may read in another way.
        return re.compile(pattern)


def pattern_of(table: TableId) -> str:
    """What names this table in an order: its name, unless that looks like a broken regular expression."""
    try:
        return _expression(str(table))
    except ValueError:
        return re.escape(str(table))


def _expression(pattern: str) -> str:
    try:
        _compiled(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is neither a name nor a regular expression: {error}") from None
    if _REPEATS.search(pattern):
        _require_quick(pattern)
    return pattern


def _require_quick(pattern: str) -> None:
    """A ValueError for what could take minutes to match, and hold up every connector meanwhile."""
    try:
        parse_expression(pattern)
    except ExpressionError as error:
        raise ValueError(f"is an expression that Tailrace does not take: {error.message}") from None


def _for_all(value: Any) -> Any:
    """A text alone is for every table."""
    return {ALL: value} if isinstance(value, str) else value


def _object_or_text(value: Any) -> Any:
    if value is not None and not isinstance(value, (dict, str)):
        raise ValueError("must be an object, or JSON in a string")
    return value


def _hyphened(name: str) -> str:
    return name.replace("_", "-")


_Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
_Pattern = Annotated[_Text, StringConstraints(max_length=PATTERN_CHARACTERS_MAX), AfterValidator(_expression)]
_Kind = Annotated[Kind, BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=_hyphened)


class _Envelope(_Strict):
    id: _Text | None = None
    type: str
    data: Annotated[Any, AfterValidator(_object_or_text)] = None


class _Condition(_Strict):
    data_collection: _Pattern
    filter: _Text


class _Execute(_Strict):
    data_collections: Annotated[list[_Pattern], Field(min_length=1)]
    type: _Kind = "incremental"
    additional_conditions: list[_Condition] = []
    additional_condition: _Text | None = None
    surrogate_key: Annotated[dict[Annotated[str, AfterValidator(_expression)], _Text], BeforeValidator(_for_all)] = {}

    @model_validator(mode="after")
    def _one_condition_each(self) -> _Execute:
        names = [each.data_collection for each in self.additional_conditions]
        if len(set(names)) < len(names):
            raise ValueError("additional-conditions: a data-collection is named twice")
        if names and self.additional_condition is not None:
            raise ValueError("additional-condition: is the older form of additional-conditions; give one of them")
        return self

    def order(self, _: str) -> ExecuteSnapshot:
        conditions = {each.data_collection: each.filter for each in self.additional_conditions}
        if self.additional_condition is not None:
            conditions = {ALL: self.additional_condition}
        return ExecuteSnapshot(tuple(self.data_collections), self.type, conditions, self.surrogate_key)


_TABLE_ORDERS: dict[str, type[PauseSnapshot] | type[ResumeSnapshot] | type[StopSnapshot]] = {
    "pause-snapshot": PauseSnapshot,
    "resume-snapshot": ResumeSnapshot,
    "stop-snapshot": StopSnapshot,
}


class _Tables(_Strict):
    data_collections: Annotated[list[_Pattern], Field(min_length=1)] = []
    type: _Kind = "incremental"

    def order(self, type_: str) -> PauseSnapshot | ResumeSnapshot | StopSnapshot:
        return _TABLE_ORDERS[type_](tuple(self.data_collections), self.type)


class _Message(_Strict):
    message: _Text

    def order(self, _: str) -> Log:
        return Log(self.message)


_DATA: dict[str, type[_Execute] | type[_Tables] | type[_Message]] = {
    "execute-snapshot": _Execute,
    **dict.fromkeys(_TABLE_ORDERS, _Tables),
    "log": _Message,
}
TYPES = tuple(_DATA)
_M = TypeVar("_M", bound=_Strict)


def _id_problem(id_: str) -> str | None:
    if not 0 < len(id_) <= ID_CHARACTERS_MAX:
        return f"id: must have between 1 and {ID_CHARACTERS_MAX} characters"
    return None if id_.isprintable() and id_ == id_.strip() else "id: must not begin or end with spaces or break lines"


def _parsed(model: type[_M], text: str, whole: str) -> _M | Rejection:
    try:
        return model.model_validate_json(text.encode("utf-8", "surrogatepass"))
    except ValidationError as error:
        reasons = dict.fromkeys(_reason(each, whole) for each in error.errors(include_url=False))
        return Rejection("; ".join(reasons))


def _reason(error: Any, whole: str) -> str:
    """One line: where, and which rule. Pydantic's own words where they serve."""
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error["loc"]).lstrip(".")
    if error["type"] == "missing":
        return _printable(f"{place} is required")
    text = {
        "extra_forbidden": "unknown key",
        "too_short": "must not be empty",
        "string_too_short": "must not be empty",
        "string_pattern_mismatch": "must not be blank",
    }.get(error["type"], error["msg"].removeprefix("Value error, "))
    if not place and error["type"] == "value_error":
        return _printable(text)
    return _printable(f"{place or whole}: {text[:1].lower()}{text[1:]}")


def _printable(text: str) -> str:
    plain = "".join(each if each.isprintable() else "�" for each in text.strip())
    return plain if len(plain) <= SHOWN_CHARACTERS_MAX else f"{plain[:SHOWN_CHARACTERS_MAX]}…"
