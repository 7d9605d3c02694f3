"""What a kind of source says of stored values: log records, positions, views, definitions and chunks."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.offsets import OffsetWords
from tailrace.source.door.values import Chunk, Definition, View


class Codec(Protocol):
    """Pure: every call needs values only, neither a connection nor an instance. So the class itself is passed around,
    and a call can be pickled and made in any process. `kinds.codec_of` finds it by name.
    """

    kind: ClassVar[str]
    """The name under which `kinds` knows this class."""
    offset_words: ClassVar[OffsetWords]
    """How offsets of this kind are written."""

    @staticmethod
    def decode(records: Any, schema: TableSchema) -> Any:
        """A batch of log records of one table and one shape as changes, `change_schema(schema)`, row for row.

        A value that its lake type cannot hold exactly is null, and its text is in `EXACT`, or in `EXACT_BEFORE` where
        it is the old row's (`model.rows.exact`); in a key it is a `TextKeyError`. It is never a neighbouring value."""
        ...

    @staticmethod
    def parse(text: str) -> SourcePosition:
        """What a person wrote, as `format` writes it. ValueError for anything else."""
        ...

    @staticmethod
    def format(position: SourcePosition) -> str:
        """For a person."""
        ...

    @staticmethod
    def shown_up_to(position: SourcePosition) -> int:
        """A snapshot at `position` shows the transactions whose commit has at most this ordinal, and no other."""
        ...

    @staticmethod
    def is_gap(position: SourcePosition) -> bool:
        """Whether a transaction that committed there stands for changes that the source has lost: what committed
        between it and the transaction before is in no log."""
        return False

    @staticmethod
    def unseen(view: View, transactions: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each of some transactions of the log's index, whether the view does not show it."""
        ...

    @staticmethod
    def renewed(definition: Definition) -> Definition:
        """The same, for a copy that is begun now. `define` tells the shape of a copy that is there, whose columns may
        have lake types that are chosen no more."""
        return definition

    @staticmethod
    def why_copy(old: Definition, new: Definition) -> str | None:
        """Why a copy made under `old`, with all changes since, may differ from a table that `new` is the definition
        of; None if it cannot. For a person. An older `new` says nothing."""
        ...

    @staticmethod
    def why_part(old: Definition, now: Definition, part: TableSchema) -> str | None:
        """Why rows that came from a part of a table may not be the table's any more: `now`, which was read after they
        were committed, does not have that part. None if it does, or if `old` is younger than what told of it. For a
        person."""
        return None

    @staticmethod
    def is_same_shape(old: Definition, new: Definition) -> bool:
        """Whether the table had the same columns, of the same names and types, from one definition to the other; none
        was there for a moment only."""
        ...

    @staticmethod
    def filtered(chunk: Chunk, condition: str) -> Chunk:
        """Those of the chunk's rows for which a condition holds that a person wrote in the source's own language.

        Reading it is a definite error where it is anything else than a condition, and where it writes."""
        ...

    @staticmethod
    def rows_query(table: TableId, condition: str | None) -> str:
        """The query that a copy of a table's rows, or of those for which a condition holds, comes to: in the source's
        own language, for a person."""
        ...
