"""The event that carries a statement, and what kind of statement it is.

Rows come as events of rows, so a statement is never run here and seldom understood. It only has to be known whether it
begins or ends a transaction, and which tables it may have changed otherwise. What cannot be told apart says so, and
then every table is suspect: that never stops the stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from tailrace.model.table import TableId
from tailrace.source.mysql.events.event import Event, EventKind, Fields
from tailrace.source.mysql.events.row_events import inflated
from tailrace.source.mysql.values.charsets import charset_of, text_of

_SQL_MODE, _CHARSET, _TIME_ZONE, _CATALOG = 1, 4, 5, 6
_FIXED_BYTES = {0: 4, _SQL_MODE: 8, 3: 4, _CHARSET: 6, 7: 2, 8: 2, 9: 8, 10: 4}
_ANSI_QUOTES, _NO_BACKSLASH_ESCAPES = 0x4, 0x100000
_DEPTH_MAX = 4


class Verb(Enum):
    """What a statement does, as far as we need to know."""

    BEGIN = auto()
    COMMIT = auto()
    ROLLBACK = auto()
    SAVEPOINT = auto()
    """Or back to one: what was undone is not in the binlog."""
    XA_START = auto()
    XA_END = auto()
    XA_COMMIT = auto()
    XA_ROLLBACK = auto()
    TRUNCATE = auto()
    DEFINITION = auto()
    """Of tables, or of whole databases."""
    ROWS = auto()
    """It changes rows, and says so only in its own words."""
    OTHER = auto()
    """It changes no table."""
    UNKNOWN = auto()


@dataclass(frozen=True)
class LoggedStatement:
    """A statement as the binlog has it."""

    database: str
    """Which one was chosen."""
    sql: str
    error_code: int
    quotes_names: bool = False
    """Double quotes are around names, and not around texts."""
    escapes: bool = True
    """A backslash means something in a text."""


@dataclass(frozen=True)
class Statement:
    """What a statement concerns."""

    verb: Verb
    tables: tuple[TableId, ...] = ()
    databases: tuple[str, ...] = ()
    """All of their tables."""
    xa: str = ""
    """The name of a prepared transaction, as the server writes it."""


def read_query(event: Event) -> LoggedStatement:
    """`UnreadableEventError` for anything else."""
    fields = Fields(event)
    fields.bytes(8)
    name_bytes, error_code, status_bytes = fields.number(1), fields.number(2), fields.number(2)
    mode, collation = _status(Fields(event, fields.bytes(status_bytes)))
    database = fields.text(name_bytes)
    fields.bytes(1)
    text = bytes(fields.rest())
    if event.kind == EventKind.QUERY_COMPRESSED:
        text = inflated(event, text)
    return LoggedStatement(
        database, _decoded(text, collation), error_code, bool(mode & _ANSI_QUOTES), not mode & _NO_BACKSLASH_ESCAPES
    )


def _status(fields: Fields) -> tuple[int, int]:
    """The mode in which the statement is to be read, and the collation of its text. What we need comes first, so we
    stop at the first thing that is not known."""
    mode = collation = 0
    while fields.left:
        code = fields.number(1)
        if code in (_CATALOG, _TIME_ZONE):
            fields.bytes(fields.number(1))
        elif code == _SQL_MODE:
            mode = fields.number(8)
        elif code == _CHARSET:
            collation = fields.number(2)
            fields.bytes(4)
        elif code in _FIXED_BYTES:
            fields.bytes(_FIXED_BYTES[code])
        else:
            break
    return mode, collation


def _decoded(text: bytes, collation: int) -> str:
    """A statement that is not text of its character set is not worth stopping for: names in it are not matched."""
    charset = charset_of(collation) if collation else None
    try:
        if charset is not None and charset.is_known:
            return text_of(text, charset.name)
        return text.decode()
    except Exception:
        return text.decode("latin-1")


@dataclass(frozen=True)
class _Token:
    text: str
    is_name: bool
    """It was in quotes, so it is no keyword."""

    @property
    def word(self) -> str:
        return "" if self.is_name else self.text.upper()


class _Tokens:
    """The statement's words, read from the beginning."""

    def __init__(self, query: LoggedStatement) -> None:
        self._left = list(_tokens(query.sql, query))
        self._left.reverse()
        self._database = query.database

    def peek(self) -> str:
        """The next word in capitals; empty for a name in quotes, and at the end."""
        return self._left[-1].word if self._left else ""

    def next(self) -> _Token:
        return self._left.pop() if self._left else _Token("", False)

    def skip(self, *words: str) -> bool:
        """Past the next word, if it is one of these."""
        if self.peek() not in words or not self._left:
            return False
        self.next()
        return True

    def skip_all(self, *words: str) -> None:
        while self.skip(*words):
            pass

    def until(self, *words: str) -> bool:
        """Past the next one of these, outside of parentheses; whether there is one."""
        depth = 0
        while self._left:
            word = self.next().word
            depth += (word == "(") - (word == ")")
            if depth == 0 and word in words:
                return True
        return False

    def table(self) -> TableId | None:
        """The name of a table, with its database or without."""
        first = self.next()
        if not first.text or first.word in ("(", ")", ",", ";", "=", "."):
            return None
        if self.skip("."):
            second = self.next()
            return TableId(first.text, second.text) if second.text else None
        return TableId(self._database, first.text)

    def tables(self) -> list[TableId] | None:
        """Names with commas between them."""
        found = []
        while True:
            table = self.table()
            if table is None:
                return None
            found.append(table)
            if not self.skip(","):
                return found


def _tokens(sql: str, query: LoggedStatement, depth: int = 0) -> Iterator[_Token]:
    text = r"(?:[^'\\]|\\.|'')*" if query.escapes else r"(?:[^']|'')*"
    double = '"(?:[^"]|"")*"' if query.quotes_names else text.join('""').replace("'", '"')
    form = re.compile(
        rf"(?P<hint>/\*M?!\d*(?P<inside>.*?)\*/)|(?P<skip>\s+|/\*.*?\*/|--(?=\s|$)[^\n]*|\#[^\n]*)"
        rf"|(?P<name>`(?:[^`]|``)*`)|(?P<double>{double})|(?P<text>'{text}')|(?P<word>[\w$@]+)|(?P<other>.)",
        re.DOTALL,
    )
    for found in form.finditer(sql):
        kind = found.lastgroup
        if found["hint"] is not None:
            if depth < _DEPTH_MAX:
                yield from _tokens(found["inside"], query, depth + 1)
        elif kind == "name":
            yield _Token(found[0][1:-1].replace("``", "`"), True)
        elif kind == "double":
            yield _Token(found[0][1:-1].replace('""', '"'), True)
        elif kind != "skip":
            yield _Token(found[0], kind == "text")


def read_statement(query: LoggedStatement) -> Statement:
    """What the statement does. Never an error."""
    tokens = _Tokens(query)
    if tokens.skip("SET"):
        # MariaDB: `set statement x = 1 for` and a statement.
        if not tokens.skip("STATEMENT"):
            return Statement(Verb.OTHER)
        tokens.until("FOR")
    word = tokens.next().word
    if word == "ROLLBACK":
        return Statement(Verb.SAVEPOINT if tokens.until("TO") else Verb.ROLLBACK)
    if word == "XA":
        return _xa(tokens, query)
    read = _DEFINITIONS.get(word, _no_definition)
    return read(tokens) or Statement(_SIMPLE.get(word, Verb.UNKNOWN))


_SIMPLE = {
    **dict.fromkeys(("BEGIN", "START"), Verb.BEGIN),
    "COMMIT": Verb.COMMIT,
    **dict.fromkeys(("SAVEPOINT", "RELEASE"), Verb.SAVEPOINT),
    **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "CALL"), Verb.ROWS),
    # A function that they call may change rows.
    **dict.fromkeys(("SELECT", "DO"), Verb.ROWS),
    **dict.fromkeys(("GRANT", "REVOKE", "FLUSH", "ANALYZE", "CHECK", "RESET", "INSTALL", "UNINSTALL"), Verb.OTHER),
    **dict.fromkeys(("KILL", "PURGE", "CHANGE"), Verb.OTHER),
}
_OTHER_THINGS = (
    *("VIEW", "USER", "ROLE", "FUNCTION", "PROCEDURE", "TRIGGER", "EVENT", "SERVER", "RESOURCE", "LOGFILE"),
    *("SPATIAL", "AGGREGATE", "PACKAGE", "DEFINER", "ALGORITHM", "SQL", "INSTANCE", "PREPARE", "LIBRARY"),
)


def _xa(tokens: _Tokens, query: LoggedStatement) -> Statement:
    verbs = {
        **dict.fromkeys(("START", "BEGIN"), Verb.XA_START),
        "END": Verb.XA_END,
        "COMMIT": Verb.XA_COMMIT,
        "ROLLBACK": Verb.XA_ROLLBACK,
    }
    verb = verbs.get(tokens.next().word, Verb.UNKNOWN)
    xa = re.sub(r"(?i)\s*one\s+phase\s*$", "", re.sub(r"(?is)^\s*xa\s+\w+\s*", "", query.sql)).strip()
    return Statement(verb, xa=xa)


def _definition(tables: list[TableId] | None, verb: Verb = Verb.DEFINITION) -> Statement | None:
    return None if tables is None or None in tables else Statement(verb, tuple(tables))


def _truncate(tokens: _Tokens) -> Statement | None:
    tokens.skip("TABLE")
    return _definition(tokens.tables(), Verb.TRUNCATE)


def _rename(tokens: _Tokens) -> Statement | None:
    if tokens.skip("USER"):
        return Statement(Verb.OTHER)
    if not tokens.skip("TABLE", "TABLES"):
        return None
    found = []
    while True:
        tokens.skip_all("IF", "EXISTS")
        old = tokens.table()
        if tokens.skip("WAIT"):
            tokens.next()
        tokens.skip("NOWAIT")
        new = tokens.table() if tokens.skip("TO") else None
        if old is None or new is None:
            return None
        found += [old, new]
        if not tokens.skip(","):
            return _definition(found)


def _drop(tokens: _Tokens) -> Statement | None:
    if tokens.skip("DATABASE", "SCHEMA"):
        return _database(tokens)
    if tokens.skip("INDEX"):
        return _on(tokens)
    if tokens.peek() in ("TEMPORARY", "SEQUENCE"):
        return Statement(Verb.OTHER)
    if not tokens.skip("TABLE", "TABLES"):
        return _other(tokens)
    tokens.skip_all("IF", "EXISTS")
    return _definition(tokens.tables())


def _alter(tokens: _Tokens) -> Statement | None:
    tokens.skip_all("ONLINE", "IGNORE")
    if tokens.skip("DATABASE", "SCHEMA"):
        return _database(tokens)
    if not tokens.skip("TABLE"):
        return _other(tokens)
    tokens.skip_all("IF", "EXISTS")
    found = [tokens.table()]
    while tokens.until("RENAME", "EXCHANGE"):
        if tokens.skip("PARTITION"):
            if not tokens.until("TABLE"):
                return None
        elif tokens.peek() in ("COLUMN", "INDEX", "KEY"):
            continue
        else:
            tokens.skip_all("TO", "AS", "=")
        found.append(tokens.table())
    return None if None in found else _definition([table for table in found if table is not None])


def _create(tokens: _Tokens) -> Statement | None:
    tokens.skip_all("OR", "REPLACE", "UNIQUE", "FULLTEXT")
    if tokens.skip("SPATIAL") and tokens.peek() == "REFERENCE":
        return Statement(Verb.OTHER)
    if tokens.skip("DATABASE", "SCHEMA"):
        return _database(tokens)
    if tokens.skip("INDEX"):
        return _on(tokens)
    if tokens.peek() in ("TEMPORARY", "SEQUENCE"):
        return Statement(Verb.OTHER)
    if not tokens.skip("TABLE"):
        return _other(tokens)
    tokens.skip_all("IF", "NOT", "EXISTS")
    table = tokens.table()
    return None if table is None else _definition([table])


def _other(tokens: _Tokens) -> Statement | None:
    """Things that are no tables. A tablespace may hold some."""
    return Statement(Verb.OTHER) if tokens.peek() in _OTHER_THINGS else None


def _database(tokens: _Tokens) -> Statement | None:
    tokens.skip_all("IF", "NOT", "EXISTS")
    name = tokens.next()
    return Statement(Verb.DEFINITION, databases=(name.text,)) if name.text else None


def _on(tokens: _Tokens) -> Statement | None:
    """Of an index."""
    table = tokens.table() if tokens.until("ON") else None
    return None if table is None else _definition([table])


def _no_definition(tokens: _Tokens) -> Statement | None:
    return None


def _maintain(tokens: _Tokens) -> Statement | None:
    """It may write a table again, but leaves its rows as they are."""
    return Statement(Verb.OTHER)


_DEFINITIONS = {
    "TRUNCATE": _truncate,
    "RENAME": _rename,
    "DROP": _drop,
    "ALTER": _alter,
    "CREATE": _create,
    "OPTIMIZE": _maintain,
    "REPAIR": _maintain,
}
