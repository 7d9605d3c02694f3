"""What changes come to in a table without a key: how many more or fewer of each row there are.

    changes  insert (1, a)   insert (1, a)   update (2, b) to (1, a)   delete (3, null)
    counts   (1, a) +3       (2, b) -1       (3, null) -1

An update takes its old row away and adds the new one. Every change carries the whole of both, so the order does not
matter, and counts of parts of a range can be added up: the base with the counts added is where the changes led.

A column that was dropped, renamed, or added as null changes a row and its copies in the lake alike. So changes from
before it and after it, all brought to one shape, can be counted together.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import ResyncError
from tailrace.model.change import BEFORE, COUNT, OP, UNCHANGED, row_schema
from tailrace.model.rows.exact import EXACT_BEFORE, exact_of, together, with_exact
from tailrace.model.rows.row import row_codes
from tailrace.model.table import TableSchema


def row_counts(changes: pa.Table, schema: TableSchema) -> pa.Table:
    """The table's columns and `COUNT`, and `EXACT` where the changes have it; a row for each different one. Truncates
    are left out."""
    shape = row_schema(schema)
    has_old = pc.is_in(changes.column(OP), pa.array(["u", "d"]))
    has_new = pc.is_in(changes.column(OP), pa.array(["c", "u"]))
    old = changes.column(BEFORE).filter(has_old).combine_chunks()
    new = changes.filter(has_new)
    if old.null_count or new.column(UNCHANGED).null_count < new.num_rows:
        raise ResyncError.of(schema.table, "an update or delete of it came without the whole row")
    fields = [pc.struct_field(old, [old.type.get_field_index(name)]) for name in shape.names]
    gone = pa.table(fields, schema=shape) if fields else shape.empty_table()
    gone = with_exact(gone, exact_of(changes.filter(has_old), EXACT_BEFORE))
    added = with_exact(new.select(shape.names), exact_of(new))
    return added_up(together([_counted(gone, -1), _counted(added, 1)], shape))


def added_up(counts: pa.Table) -> pa.Table:
    """Counts of parts of a range as those of the whole; rows whose number has not changed are left out."""
    counts = counts.combine_chunks()
    columns = [counts.column(name).combine_chunks() for name in counts.column_names if name != COUNT]
    codes, different = row_codes(columns)
    totals = np.zeros(different, np.int64)
    np.add.at(totals, codes, counts.column(COUNT).to_numpy())
    first = np.zeros(different, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    # In the order in which they came: rows of one time lie together.
    kept = np.sort(first[totals != 0])
    found = counts.take(pa.array(kept))
    return found.set_column(found.schema.get_field_index(COUNT), COUNT, pa.array(totals[codes[kept]]))


def _counted(rows: pa.Table, count: int) -> pa.Table:
    return rows.append_column(COUNT, pa.array(np.full(rows.num_rows, count, np.int64)))
