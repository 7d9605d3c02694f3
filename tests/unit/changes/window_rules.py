"""How a copy by windows puts rows and changes together: our rules, and those of a naive window.

Ours are the real ones, on real Arrow tables: `unseen`, `reconciled`, `Tail` and `fitting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from tests.unit.changes.window_model import ABORT, LOST, Changes, Keys, Rows, Staged, Values, lasting

from tailrace.changes.reconcile import reconciled
from tailrace.changes.shape import TableShape
from tailrace.changes.tail import Tail
from tailrace.lake.growing_states import fitting
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, change_schema, row_schema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.door.values import View
from tailrace.source.postgres.rows.visibility import unseen

COLUMNS = (Column("id", "int", "integer"), Column("small", "string", "text"), Column("big", "string", "text"))
SCHEMA = TableSchema(TableId("public", "t"), 1, COLUMNS, ("id",))
SHAPE = TableShape(SCHEMA, (), lambda *_: None)


@dataclass(frozen=True)
class Windows:
    """Ours."""

    is_exact: bool = True

    def followed(self, rows: Rows, log: tuple[Changes, ...], *, is_whole: bool) -> tuple[Rows, Keys]:
        return _followed(rows, tuple(map(lasting, log)), is_whole)

    def published(self, rows: Rows, staged: Staged, log: tuple[tuple[int, Changes], ...]) -> tuple[Rows, Keys]:
        missed = self._missed(staged, log)
        changes = tuple(lasting(changes) for (_, changes), is_missed in zip(log, missed, strict=True) if is_missed)
        return _published_window(rows, staged.rows, changes, self.is_exact, staged.again)

    def _missed(self, staged: Staged, log: tuple[tuple[int, Changes], ...]) -> tuple[bool, ...]:
        return _missed_by_numbers(staged.shown, log) if self.is_exact else _missed_by_places(len(staged.shown), log)


@cache
def _missed_by_numbers(shown: frozenset[int], log: tuple[tuple[int, Changes], ...]) -> tuple[bool, ...]:
    """Of each logged transaction, whether a state does not show it. Whether the state lists the sub-transactions of
    those that it does not show makes no difference."""
    found = [_unseen(view, [_top(number) for number, _ in log]) for view in _views(shown, log)]
    assert found[0] == found[1]
    return found[0]


@cache
def _missed_by_places(shown: int, log: tuple[tuple[int, Changes], ...]) -> tuple[bool, ...]:
    """The same on a standby, which shows the first ones."""
    return _unseen({"replayed": shown}, [_top(number) for number, _ in log])


def _unseen(view: View, xids: Sequence[int]) -> tuple[bool, ...]:
    ends = pa.array(range(1, len(xids) + 1), pa.uint64())
    return tuple(unseen(view, pa.table({"xid": pa.array(xids, pa.uint64()), "end_ordinal": ends})).tolist())


def _top(number: int) -> int:
    """The server's number of a transaction. Those of its sub-transactions follow."""
    return 10 * (number + 1)


def _views(shown: frozenset[int], log: tuple[tuple[int, Changes], ...]) -> list[View]:
    """What the server says of a state: without sub-transactions, and with them."""
    ended, open_, subs = {0}, list[int](), list[int]()
    for number, changes in log:
        mine = {_top(number) + change.sub for change in changes}
        ended |= {_top(number) + change.key for change in changes if change.op == ABORT}
        if number in shown:
            ended |= {_top(number), *mine}
        else:
            open_.append(_top(number))
            subs += mine
    xmax = max(ended) + 1
    listed = [[xid for xid in xids if xid < xmax and xid not in ended] for xids in (open_, [*open_, *subs])]
    return [{"xmin": min([xmax, *xids]), "xmax": xmax, "xip": xids} for xids in listed]


@cache
def _followed(rows: Rows, log: tuple[Changes, ...], is_whole: bool) -> tuple[Rows, Keys]:
    tail = Tail(SHAPE, changes_table(log))
    if is_whole and not tail.truncated:
        _prove(dict(rows), tail.states)
    return _grown(frozenset() if tail.truncated else rows, tail.states)


@cache
def _published_window(
    rows: Rows, read: Rows, unseen: tuple[Changes, ...], is_exact: bool, again: Keys | None
) -> tuple[Rows, Keys]:
    tail = Tail(SHAPE, changes_table(unseen), keeps_gone=True)
    chunk = pa.Table.from_pylist(
        [{"id": key, "small": small, "big": big} for key, (small, big) in read], schema=row_schema(SCHEMA)
    )
    wanted = None if again is None else pa.table({"id": pa.array(sorted(again), pa.int32())})
    found = reconciled(chunk, tail.states, SCHEMA, is_exact=is_exact, is_truncated=tail.truncated, wanted=wanted)
    after, none = _grown(rows, found.states)
    assert not none
    return after, frozenset(found.again.column("id").to_pylist())


def _prove(held: dict[int, Values], states: pa.Table) -> None:
    """A table that is whole is proven at every publish."""
    for state in states.to_pylist():
        assert state[FRESH] == (state["id"] not in held)
        assert not state[UNCHANGED] or (state[ORIGIN] or state)["id"] in held


def _grown(rows: Rows, states: pa.Table) -> tuple[Rows, Keys]:
    held = dict(rows)
    there = np.array([key in held for key in states.column("id").to_pylist()], bool)
    fit, again = fitting(states, ["id"], there, lambda keys: np.isin(keys.column("id").to_numpy(), [*held]))
    after = dict(held)
    for state in fit.to_pylist():
        after.pop(state["id"], None)
        if not state[DELETED]:
            old = held[(state[ORIGIN] or state)["id"]] if state[UNCHANGED] else None
            after[state["id"]] = (state["small"], old[1] if old else state["big"])
    return frozenset(after.items()), frozenset(again.column("id").to_pylist())


def changes_table(log: tuple[Changes, ...]) -> pa.Table:
    """Decoded changes, as a source gives them."""
    lines = []
    for seq, changes in enumerate(log, start=1):
        for change in changes:
            small, big = change.values or (None, None)
            before = change.key if change.op == "d" else change.moved_from
            old = None if before is None else {"id": before, "small": None, "big": None}
            new = None if change.op in "dt" else change.key
            left_out = ["big"] if change.is_partial else None
            sent = None if change.is_partial else big
            lines.append([change.op, seq, len(lines), seq, seq, None, old, left_out, new, small, sent])
    shape = change_schema(SCHEMA)
    columns = zip(*lines, strict=True) if lines else [[]] * len(shape)
    return pa.table([pa.array(list(values), field.type) for values, field in zip(columns, shape, strict=True)], shape)


class NaiveWindows:
    """A window as DBLog has it: rows whose keys were changed in the log between its opening and its closing are
    dropped, the others are emitted where it closes."""

    def followed(self, rows: Rows, log: tuple[Changes, ...], *, is_whole: bool) -> tuple[Rows, Keys]:
        held = dict(rows)
        for change in (change for changes in log for change in lasting(changes)):
            old = held.get(change.key if change.moved_from is None else change.moved_from, (LOST, LOST))
            for key in (change.key, change.moved_from):
                held.pop(key, None) if key is not None else None
            held = {} if change.op == "t" else held
            if change.values is not None:
                held[change.key] = (change.values[0], old[1] if change.is_partial else change.values[1])
        return frozenset(held.items()), frozenset()

    def published(self, rows: Rows, staged: Staged, log: tuple[tuple[int, Changes], ...]) -> tuple[Rows, Keys]:
        inside = [change for _, changes in log[staged.end :] for change in lasting(changes)]
        changed = {key for change in inside for key in (change.key, change.moved_from)}
        emitted = {key: values for key, values in staged.rows if key not in changed}
        if any(change.op == "t" for change in inside):
            emitted = {}
        return frozenset((dict(rows) | emitted).items()), frozenset()


class PaperWindows(NaiveWindows):
    """The same, between two watermarks in the log."""

    def published(self, rows: Rows, staged: Staged, log: tuple[tuple[int, Changes], ...]) -> tuple[Rows, Keys]:
        return super().published(rows, staged._replace(end=staged.opened), log)


class TrustingWindows(Windows):
    """Ours, but for this: what the log has before the first watermark is thought to be seen."""

    def published(self, rows: Rows, staged: Staged, log: tuple[tuple[int, Changes], ...]) -> tuple[Rows, Keys]:
        before = frozenset(number for number, _ in log[: staged.opened])
        return super().published(rows, staged._replace(shown=staged.shown | before), log)


class SubWindows(Windows):
    """Ours, but for this: a change is judged by the number of the sub-transaction that made it."""

    def published(self, rows: Rows, staged: Staged, log: tuple[tuple[int, Changes], ...]) -> tuple[Rows, Keys]:
        view, *_ = _views(staged.shown, log)
        changes = []
        for number, logged in log:
            missed = _unseen(view, [_top(number) + change.sub for change in lasting(logged)])
            changes.append(
                tuple(change for change, is_missed in zip(lasting(logged), missed, strict=True) if is_missed)
            )
        return _published_window(rows, staged.rows, tuple(filter(None, changes)), self.is_exact, staged.again)


class ForgetfulWindows(Windows):
    """Ours, but for this: changes of sub-transactions that were rolled back are replayed over a window, too."""

    def published(self, rows: Rows, staged: Staged, log: tuple[tuple[int, Changes], ...]) -> tuple[Rows, Keys]:
        kept = tuple((n, tuple(each._replace(sub=0) for each in changes if each.op != ABORT)) for n, changes in log)
        return super().published(rows, staged, kept)
