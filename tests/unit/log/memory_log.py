"""The log as a list: what records mean, one by one and slowly. The oracle of the state machine.

Record number n carries ordinal n + 1, so that any record found on disk says which one it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.unit.log.records import Record

from tailrace.model.kind import Kind


@dataclass
class Change:
    number: int
    sub_xid: int
    relation: int
    payload: bytes
    undone: bool = False


Point = tuple[int, int, bytes]
"""Of the source's history: ordinal, time, detail."""


@dataclass
class Transaction:
    xid: int
    first: int
    committed: Point = (0, 0, b"")
    changes: list[Change] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    schemas: list[Record] = field(default_factory=list)
    prepared: bool = False

    @property
    def effective(self) -> list[Change]:
        return [c for c in self.changes if not c.undone and c.sub_xid not in self.aborted]


@dataclass
class Meaning:
    """What a list of records amounts to."""

    finished: list[Transaction] = field(default_factory=list)
    active: dict[int, Transaction] = field(default_factory=dict)
    in_force: dict[int, bytes] = field(default_factory=dict)
    received: Point = (0, 0, b"")

    @property
    def last_commit(self) -> Point:
        return self.finished[-1].committed if self.finished else (0, 0, b"")


def interpret(records: list[Record]) -> Meaning:
    meaning = Meaning()
    for number, record in enumerate(records):
        _step(meaning, number, record)
    return meaning


def _step(meaning: Meaning, number: int, record: Record) -> None:
    active = meaning.active
    match record.kind:
        case Kind.BEGIN:
            active[record.xid] = Transaction(record.xid, number)
        case Kind.COMMIT:
            done = active.pop(record.xid)
            meaning.finished.append(done)
            # 8 bytes each: the ordinal of the commit, that of its end, its time. All that follows is the detail.
            payload = record.payload
            time_us, detail = int.from_bytes(payload[16:24], signed=True), payload[24:]
            done.committed = (int.from_bytes(payload[:8]), time_us, detail)
            _receive(meaning, (int.from_bytes(payload[8:16]), time_us, detail))
            meaning.in_force.update((schema.relation, schema.payload) for schema in done.schemas)
        case Kind.ROLLBACK:
            active.pop(record.xid, None)
        case Kind.ROLLBACK_SUB:
            active[record.xid].aborted.add(record.sub_xid)
        case Kind.UNDO:
            _undo(active[record.xid], record)
        case Kind.SCHEMA if record.xid == 0:
            meaning.in_force[record.relation] = record.payload
        case Kind.SCHEMA:
            active[record.xid].schemas.append(record)
        case Kind.SHAPE:
            done = active[record.xid]
            done.schemas = [_completed(each, record) for each in done.schemas]
        case Kind.PREPARE:
            active[record.xid].prepared = True
        case Kind.KEEPALIVE:
            _receive(meaning, (record.ordinal, 0, record.payload))
        case _:
            active[record.xid].changes.append(Change(number, record.sub_xid, record.relation, record.payload))


def _receive(meaning: Meaning, point: Point) -> None:
    if point[0] >= meaning.received[0]:
        meaning.received = point


def _completed(schema: Record, shape: Record) -> Record:
    is_meant = (schema.relation, schema.ordinal) == (shape.relation, shape.ordinal)
    return replace(schema, payload=shape.payload) if is_meant else schema


def _undo(transaction: Transaction, record: Record) -> None:
    for change in reversed(transaction.changes):
        if not change.undone and (change.sub_xid, change.relation) == (record.sub_xid, record.relation):
            change.undone = True
            return
