"""What is known of a table before its copy begins, and what follows from it: in which of the two ways it is copied, and
what its record says from then on. Decided without I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailrace.connector.copy.running_copy import TableStart
from tailrace.connector.copy.wishes import CopyWish
from tailrace.model.table import TableSchema
from tailrace.model.table_state import TableRecord, TableState
from tailrace.settings import SnapshotMode, TaskSizes
from tailrace.source.door.codec import Codec


@dataclass(frozen=True)
class Prospect:
    """A table that is to be copied."""

    record: TableRecord
    schema: TableSchema | None
    """As the source was last found to define it."""
    mode: SnapshotMode
    wish: CopyWish | None = None
    is_cut_short: bool = False
    rows_estimated: int = 0
    bytes_estimated: int = 0

    def is_by_windows(self, sizes: TaskSizes, *, has_cut: bool) -> bool:
        """A table without a key is always copied at once. Others are, unless the lake has begun, the table has been
        copied before, or it is very large: what dies at once begins again."""
        if self.schema is None or not self.schema.key or (self.wish is not None and self.wish.at_once):
            return False
        is_late = has_cut or bool(self.record.relation)
        is_large = self.rows_estimated > sizes.windows_rows_min or self.bytes_estimated > sizes.windows_bytes_min
        return is_late or is_large or self.mode is SnapshotMode.INCREMENTAL or self.lacks_rows

    @property
    def lacks_rows(self) -> bool:
        """Whether it is taken in without the rows that it has. A table without a key cannot be followed so."""
        is_first = self.record.state in (TableState.PENDING, TableState.SNAPSHOTTING)
        return self.mode is SnapshotMode.NEVER and is_first and self.schema is not None and bool(self.schema.key)

    @property
    def condition(self) -> str | None:
        """Which of its rows are read; None for all."""
        if self.is_cut_short:
            return "false"
        is_meant = self.wish is not None and self.wish.copy == self.record.copy
        return self.wish.condition if self.wish is not None and is_meant else None

    def begun(self, codec: type[Codec]) -> TableRecord:
        """Its record as the copy begins. The definition was read before, so nothing that happens from now on is
        missed."""
        state = TableState.SNAPSHOTTING if self.record.state is TableState.PENDING else self.record.state
        if self.record.definition is not None and self.condition is not None:
            # Rows that stay are as this definition has them.
            return replace(self.record, state=state)
        known = self.schema.definition if self.schema is not None else None
        definition = codec.renewed(known) if known else None
        return replace(self.record, state=state, definition=definition, lacks_rows=self.lacks_rows)

    def start(self) -> TableStart:
        """What a copy is told, once the record says that it has begun."""
        column = self.wish.surrogate_key if self.wish is not None else None
        return TableStart(
            self.record.copy,
            self.record.text_key,
            self.record.definition,
            order=() if column is None else (column,),
            condition=self.condition,
            has_rows=not self.record.lacks_rows,
            is_cut_short=self.is_cut_short,
        )
