"""What a log holds, as values for programs: numbers as numbers, sizes in bytes, times in UTC."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tailrace.cli.log.tables import Formatter, Record, payload_text
from tailrace.cli.sizes import time_text
from tailrace.log.reader import LogReader
from tailrace.log.survey import LogHolder, SegmentSummary, Totals, kind_name
from tailrace.model.position import SourcePosition

Fields = dict[str, Any]


def of_segments(segments: Iterable[SegmentSummary]) -> list[Fields]:
    return [
        {
            "segment": each.path.name,
            "position": each.position,
            "position_stop": each.position_stop,
            "after_seq": each.after,
            "upto_seq": each.upto,
            "bytes": each.bytes,
            "index_bytes": each.index_bytes,
            "created": time_text(each.created_us),
        }
        for each in segments
    ]


def of_holders(holders: Iterable[LogHolder]) -> dict[str, list[Fields]]:
    """Who needs what. `bytes_behind` is null where a damaged index cannot say."""
    found: dict[str, list[Fields]] = {"consumers": [], "pins": []}
    for each in holders:
        found["pins" if each.is_pin else "consumers"].append(
            {
                "name": each.name,
                "seq": each.seq,
                "transactions_behind": each.transactions,
                "bytes_behind": each.bytes,
                "transactions_deleted": each.gone,
            }
        )
    return found


def of_log(reader: LogReader, segments: Sequence[SegmentSummary], totals: Totals, written: Formatter) -> Fields:
    head = reader.head
    return {
        "identity": dict(sorted(reader.identity.items())),
        "head_seq": head.seq,
        "head_position": head.position,
        "source_position": written(SourcePosition(head.ordinal)),
        "written": time_text(head.written_us) if head.written_us else None,
        "bytes": sum(each.bytes for each in segments),
        "index_bytes": sum(each.index_bytes for each in segments),
        "segments": len(segments),
        "transactions": totals.transactions,
        "oldest_seq": reader.oldest_seq if totals.transactions else None,
        "first_committed": time_text(totals.first_us) if totals.transactions else None,
        "last_committed": time_text(totals.last_us) if totals.transactions else None,
        "changes": totals.changes,
        "tables": len(totals.relations),
    }


def of_record(position: int, record: Record, names: Mapping[int, str], written: Formatter) -> Fields:
    """With its whole payload, as text: what is not text in it is `\\xNN`."""
    kind, relation, ordinal = record["kind"], record["relation"], record["ordinal"]
    assert isinstance(kind, int)
    assert isinstance(relation, int)
    assert isinstance(ordinal, int)
    return {
        "position": position,
        "source_position": written(SourcePosition(ordinal)),
        "xid": record["xid"],
        "sub_xid": record["sub_xid"] or None,
        "kind": kind_name(kind),
        "table": names.get(relation, str(relation)) if relation else None,
        "payload": payload_text(kind, record["payload"], written, sys.maxsize).plain,
    }
