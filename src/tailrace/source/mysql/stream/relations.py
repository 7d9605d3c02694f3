"""The numbers under which tables are in the log, and which shape of each the log has.

The server's own numbers mean nothing after the next file, so a table's number is made from its name, the same for
whoever asks. Two tables of one number cannot both be logged: the second is refused, by name.
"""

from __future__ import annotations

import xxhash

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId, TableSchema


def relation_of(table: TableId) -> int:
    """Never 0, which is no table."""
    number: int = xxhash.xxh32_intdigest(str(table).encode())
    return number or 1


class LoggedShapes:
    """What the log has been told of tables since this reading began. A shape that is told twice harms nothing."""

    def __init__(self) -> None:
        self._tables: dict[int, TableId] = {}
        self._shapes: dict[int, TableSchema] = {}

    def relation(self, table: TableId) -> int:
        """The table's number. A definite error where another table has it."""
        number = relation_of(table)
        taken = self._tables.setdefault(number, table)
        if taken != table:
            raise DefiniteError(
                f"{taken} and {table} would have the same number in the log", f"rename {table} at the source"
            )
        return number

    def is_new(self, schema: TableSchema) -> bool:
        """Whether the shape is another one than was told last; it counts as told from now on."""
        if self._shapes.get(schema.relation) == schema:
            return False
        self._shapes[schema.relation] = schema
        return True

    def forget(self) -> None:
        """Of what was told, some was taken back."""
        self._shapes.clear()
