"""Names that Delta Lake does not take for a column like any other, and what becomes of a table that has one.

Each was tried on Delta 4.4. Spark does not tell upper from lower case in any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tailrace.errors import DefiniteError, ResyncError
from tailrace.model.table import TableId

_FILE_COLUMN = "_metadata"
"""Spark's hidden column of the file that a row is in. Where there are deletion vectors, Delta asks for it by this name
and gets the table's own column: it can then neither change the table nor read it. Without them both work."""
_TAKEN = {
    "_row_dropped_",
    "_source_row_present_",
    "_target_row_present_",
    "_row_id_",
    "_file_name_",
    "_tmp_metadata_row_index",
    "__delta_internal_is_row_deleted",
}
"""What Delta and Spark call columns that they add to a table's own, to merge it or to scan it."""


def properties(columns: Sequence[str]) -> dict[str, str]:
    """Which features of Delta a table with these columns uses. With column mapping any name is possible, and a rename
    or a drop is metadata."""
    return {
        "delta.enableDeletionVectors": "false" if _FILE_COLUMN in map(str.lower, columns) else "true",
        "delta.columnMapping.mode": "name",
    }


def require_possible(table: TableId, columns: Iterable[str]) -> None:
    """A definite error for a column that no table can have."""
    for name in columns:
        if name.lower() in _TAKEN:
            raise DefiniteError(
                f"table {table} has a column {name}, a name that Delta Lake uses itself",
                f"rename the column, or leave the table out with --exclude {table.argument}",
                str(table),
            )


def require_addable(table: TableId, columns: Sequence[str]) -> None:
    """An error for a column that a table with deletion vectors cannot get."""
    require_possible(table, columns)
    for name in columns:
        if name.lower() == _FILE_COLUMN:
            raise ResyncError.of(
                table, f"column {name} was added, and Delta Lake has no room for it beside deletion vectors"
            )
