"""A small world in which a table is copied by windows, and a search through everything that can happen in it.

The source commits transactions, and shows each of them at once or later; one that waits for another's rows commits
after that other is shown. Beside it the copy takes its steps: begin, follow the log, read a group of keys, publish it,
lose it in a crash. Every state of this world that any order of steps leads to is visited once, and what the lake shows
in it is compared with the source as of the lake's own transaction.

A transaction may have sub-transactions. The log has all that they changed, each change under the number of its own,
and says at the end which were rolled back. What shows a transaction shows all of its sub-transactions that were not.

The source and the lake are dictionaries here. How rows and changes are put together is asked of `window_rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

LOST = "?"
"""What a reader sees of a large value that was left out and cannot be found."""

Values = tuple[str, str]
"""Of the small and of the large column."""
Rows = frozenset[tuple[int, Values]]
Keys = frozenset[int]
Op = tuple[str, *tuple[int, ...]]
"""What to do with the row of a key, if it is there: `("move", 1, 2)`. Or a sub-transaction: `("savepoint", 1)`, and
later `("release", 1)` or `("rollback", 1)`."""
BRACKETS = ("savepoint", "release", "rollback")


class Change(NamedTuple):
    """What the log has of one; `values` are whole, whatever the source left out."""

    op: str
    key: int
    values: Values | None = None
    is_partial: bool = False
    moved_from: int | None = None
    sub: int = 0
    """The sub-transaction that made it; 0 for the transaction itself."""


ABORT = "a"
"""The `op` of what is no change: the sub-transaction that it names was rolled back."""
Changes = tuple[Change, ...]
"""Of one transaction, as they were logged."""


class World(NamedTuple):
    """How it begins, and which transactions will be committed, in any order."""

    rows: Rows
    transactions: tuple[tuple[Op, ...], ...]
    groups: tuple[tuple[int, ...], ...] = ((1,), (2, 3))
    """The keys that each window reads, up to the greatest that is there at the beginning."""
    is_standby: bool = False
    """It is read on a standby: transactions are shown in the order of their commits, whoever waited for whom, and of
    the last one that is shown this may not be known."""
    has_watermarks: bool = False
    """A window writes to the source before its rows are read and after. It is published where the second one is."""


class Staged(NamedTuple):
    """Rows that were read and are not published yet. A crash loses them."""

    shown: frozenset[int]
    """Transactions that the state under which they were read is known to have shown."""
    rows: Rows
    end: int | None
    """Where the log had got to when they had been read. With watermarks, where the second one is; None without it."""
    again: Keys | None
    """The keys, where they were read again."""
    opened: int | None = None
    """Where the first watermark is in the log."""


class Lake(NamedTuple):
    """The newest version and its stamp. Survives every crash."""

    seq: int
    rows: Rows
    unread: tuple[Keys, ...]
    began: int
    """Where the log had got to when it was begun."""
    start: int
    """The transaction that it followed from. Every later state is known to show that one and all before it."""
    again: Keys = frozenset()

    @property
    def is_whole(self) -> bool:
        return not self.unread and not self.again


class State(NamedTuple):
    log: tuple[int, ...] = ()
    """Transactions by their place in the world, in the order of their commits."""
    shown: frozenset[int] = frozenset()
    lake: Lake | None = None
    staged: Staged | None = None
    opened: int | None = None
    """Where a window was opened of which nothing is read yet."""


class Rules(Protocol):
    """How a table is copied. Both return the lake's rows, and keys that have to be read again."""

    def followed(self, rows: Rows, log: tuple[Changes, ...], *, is_whole: bool) -> tuple[Rows, Keys]:
        """The rows of the lake after some transactions."""
        ...

    def published(self, rows: Rows, staged: Staged, log: tuple[tuple[int, Changes], ...]) -> tuple[Rows, Keys]:
        """The rows of the lake with those of a window. The lake has all of the log, transactions by their place."""
        ...


@cache
def performed(rows: Rows, transaction: tuple[Op, ...], name: int) -> tuple[Rows, Changes]:
    """The rows after a transaction, and its changes. No two transactions write the same value."""
    held, changes = dict(rows), list[Change]()
    begun: list[tuple[int, dict[int, Values]]] = []
    """Sub-transactions, and the rows when each began. Those in another that is rolled back are, too."""
    released: set[int] = set()
    for number, (kind, *keys) in enumerate(transaction):
        key = keys[0] if keys else 0
        new = f"{name}.{number}"
        before = len(changes)
        if kind == "savepoint":
            begun.append((key, dict(held)))
        elif kind == "release":
            released.add(key)
        elif kind == "rollback":
            at = [sub for sub, _ in begun].index(key)
            held = begun[at][1]
            changes += [Change(ABORT, sub) for sub, _ in begun[at:]]
            del begun[at:]
        elif kind == "truncate":
            held = {}
            changes.append(Change("t", 0))
        elif kind == "insert" and key not in held:
            held[key] = (new, new)
            changes.append(Change("c", key, held[key]))
        elif kind == "delete" and held.pop(key, None):
            changes.append(Change("d", key))
        elif kind in ("update", "rewrite") and key in held:
            held[key] = (new, held[key][1] if kind == "update" else new)
            changes.append(Change("u", key, held[key], is_partial=kind == "update"))
        elif kind == "move" and key in held and keys[1] not in held:
            held[keys[1]] = (new, held.pop(key)[1])
            changes.append(Change("u", keys[1], held[keys[1]], is_partial=True, moved_from=key))
        inside = [0, *(sub for sub, _ in begun if sub not in released)]
        changes[before:] = [change._replace(sub=inside[-1]) for change in changes[before:]]
    return frozenset(held.items()), tuple(changes)


def lasting(changes: Changes) -> Changes:
    """Without those of sub-transactions that were rolled back, as the log is played back."""
    gone = {change.key for change in changes if change.op == ABORT}
    return tuple(change for change in changes if change.op != ABORT and change.sub not in gone)


def lasting_ops(transaction: tuple[Op, ...]) -> list[Op]:
    found: list[Op] = []
    begun: dict[int, int] = {}
    for op in transaction:
        if op[0] == "savepoint":
            begun[op[1]] = len(found)
        elif op[0] == "rollback":
            del found[begun[op[1]] :]
        elif op[0] not in BRACKETS:
            found.append(op)
    return found


def replayed(rows: Rows, changes: Iterable[Change]) -> Rows:
    held = dict(rows)
    for change in changes:
        if change.op == "t":
            held = {}
        elif change.op == "d":
            del held[change.key]
        else:
            if change.moved_from is not None:
                del held[change.moved_from]
            assert change.values is not None
            held[change.key] = change.values
    return frozenset(held.items())


@dataclass(frozen=True)
class Source:
    """The world as its log tells it."""

    world: World

    def history(self, log: tuple[int, ...]) -> tuple[tuple[Rows, ...], tuple[Changes, ...]]:
        """The rows before the first transaction and after each, and the changes of each."""
        return _history(self.world, log)

    def view(self, log: tuple[int, ...], shown: frozenset[int]) -> Rows:
        _, changes = self.history(log)
        parts = (lasting(part) for number, part in zip(log, changes, strict=True) if number in shown)
        return replayed(self.world.rows, (change for part in parts for change in part))

    def can_commit(self, number: int, state: State) -> bool:
        """Whoever wants a row that another has changed waits until that one is shown."""
        hidden = [each for each in state.log if each not in state.shown and not self.world.is_standby]
        return number not in state.log and not any(_meet(self.world, number, each) for each in hidden)

    def can_show(self, number: int, state: State) -> bool:
        is_next = not self.world.is_standby or state.log.index(number) == len(state.shown)
        return number not in state.shown and is_next

    def known(self, state: State) -> set[frozenset[int]]:
        """The transactions that may be known to be shown."""
        all_but_one = state.log[: max(0, len(state.shown) - 1)]
        return {state.shown, frozenset(all_but_one) if self.world.is_standby else state.shown}


@cache
def _history(world: World, log: tuple[int, ...]) -> tuple[tuple[Rows, ...], tuple[Changes, ...]]:
    if not log:
        return (world.rows,), ()
    rows, changes = _history(world, log[:-1])
    after, made = performed(rows[-1], world.transactions[log[-1]], log[-1])
    return (*rows, after), (*changes, made)


def _meet(world: World, one: int, other: int) -> bool:
    # A sub-transaction that is rolled back gives back its locks.
    ops = [lasting_ops(world.transactions[each]) for each in (one, other)]
    if any(op == ("truncate",) for each in ops for op in each):
        return True
    mine, theirs = ({key for op in each for key in op[1:]} for each in ops)
    return bool(mine & theirs)


def steps(source: Source, rules: Rules, state: State) -> Iterator[tuple[str, State]]:
    """Every step that can be taken, and where it leads."""
    log, shown, lake, staged, opened = state
    for number in range(len(source.world.transactions)):
        if source.can_commit(number, state):
            yield f"commit {number}", state._replace(log=(*log, number))
        elif number in log and source.can_show(number, state):
            yield f"show {number}", state._replace(shown=shown | {number})
    if lake is None:
        for known in source.known(state):
            yield "begin", state._replace(lake=_begun(source, state, known))
        return
    last = len(log) if staged is None or staged.opened is None or staged.end is None else staged.end
    for upto in range(lake.seq + 1, last + 1):
        changes = source.history(log)[1][lake.seq : upto]
        rows, again = rules.followed(lake.rows, changes, is_whole=lake.is_whole)
        yield f"follow to {upto}", state._replace(lake=lake._replace(seq=upto, rows=rows, again=lake.again | again))
    if staged is not None:
        yield "crash", state._replace(staged=None)
        if staged.end is None:
            yield "close", state._replace(staged=staged._replace(end=len(log)))
        elif lake.seq >= staged.end:
            yield "publish", state._replace(lake=_published(source, rules, state), staged=None)
    elif source.world.has_watermarks and opened is None:
        yield "open", state._replace(opened=len(log))
    else:
        yield from _reads(source, state, lake)


def _reads(source: Source, state: State, lake: Lake) -> Iterator[tuple[str, State]]:
    """Everything that a window can read now."""
    log, shown, *_, opened = state
    if opened is not None:
        yield "crash", state._replace(opened=None)
    visible = source.view(log, shown)
    for keys, again in [(keys, None) for keys in lake.unread[:1]] + [(lake.again, lake.again)] * bool(lake.again):
        read = frozenset(row for row in visible if row[0] in keys)
        for known in (each for each in source.known(state) if each.issuperset(log[: lake.start])):
            staged = Staged(known, read, None if source.world.has_watermarks else len(log), again, opened)
            yield f"read {sorted(keys)}", state._replace(staged=staged, opened=None)


def _begun(source: Source, state: State, known: frozenset[int]) -> Lake:
    """Empty, at the last transaction up to which all are shown. One window is read in any case: what is shown of later
    transactions may be that they deleted rows."""
    start = next((seq for seq, number in enumerate(state.log) if number not in known), len(state.log))
    greatest = max((key for key, _ in source.view(state.log, state.shown)), default=0)
    groups = (frozenset(key for key in group if key <= greatest) for group in source.world.groups)
    unread = tuple(group for group in groups if group) or (frozenset(),)
    return Lake(start, frozenset(), unread, len(state.log), start)


def _published(source: Source, rules: Rules, state: State) -> Lake:
    lake, staged = state.lake, state.staged
    assert lake is not None
    assert staged is not None
    log = tuple(zip(state.log, source.history(state.log)[1], strict=True))[: lake.seq]
    rows, again = rules.published(lake.rows, staged, log)
    if staged.again is not None:
        return lake._replace(rows=rows, again=(lake.again - staged.again) | again)
    return lake._replace(rows=rows, unread=lake.unread[1:], again=lake.again | again)


def faults(source: Source, state: State) -> set[str]:
    """What is wrong in the lake: each row that it has is the source's, and one that it lacks is still to be read, or
    was gone when the copy was begun."""
    lake = state.lake
    if lake is None:
        return set()
    expected, held = dict(source.history(state.log)[0][lake.seq]), dict(lake.rows)
    to_be_read = lake.again.union(*lake.unread)
    missing = expected.keys() - held.keys() - to_be_read
    found = {"a row is missing"} if missing and lake.seq >= lake.began else set()
    found |= {"a deleted row is there" for key in held.keys() - expected.keys()}
    for key in held.keys() & expected.keys():
        if held[key] != expected[key]:
            found.add("a large value is lost" if held[key][1] == LOST else "a row is stale")
    return found


def is_end(source: Source, state: State) -> bool:
    lake, count = state.lake, len(source.world.transactions)
    return lake is not None and lake.is_whole and lake.seq == len(state.shown) == count


@dataclass
class Search:
    """Every state of a world, each with the step that first led to it."""

    source: Source
    rules: Rules

    def __post_init__(self) -> None:
        self.came_from: dict[State, tuple[State, str] | None] = {State(): None}
        self.before: dict[State, list[State]] = {}
        waiting = [State()]
        while waiting:
            state = waiting.pop()
            for label, after in self._steps(state):
                self.before.setdefault(after, []).append(state)
                if after not in self.came_from:
                    self.came_from[after] = (state, label)
                    waiting.append(after)

    def _steps(self, state: State) -> list[tuple[str, State]]:
        try:
            return [*steps(self.source, self.rules, state)]
        except AssertionError as error:
            raise AssertionError(f"after {self.way_to(state)}") from error

    def faults(self, *, at_end: bool = False) -> dict[str, str]:
        """Each kind of fault, with a way that leads to it; `at_end`: with those alone that are never made good."""
        found: dict[str, str] = {}
        for state in self.came_from:
            if not at_end or is_end(self.source, state):
                found |= {each: self.way_to(state) for each in faults(self.source, state) - found.keys()}
        return found

    def stuck(self) -> list[str]:
        """Ways to states from which the copy can never be finished."""
        waiting = [state for state in self.came_from if is_end(self.source, state)]
        reached = set(waiting)
        while waiting:
            fresh = set(self.before.get(waiting.pop(), ())) - reached
            reached |= fresh
            waiting += fresh
        return [self.way_to(state) for state in self.came_from if state not in reached]

    def way_to(self, state: State) -> str:
        labels: list[str] = []
        while (step := self.came_from[state]) is not None:
            state, label = step
            labels.append(label)
        return ", ".join(reversed(labels))
