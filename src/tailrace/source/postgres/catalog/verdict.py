"""Whether a copy of a table can go on after its definition moved: a pure decision, old and new definition in, a reason
to copy the table again out.

Harmless, by proof: a column added that is null in old rows, dropped or renamed; text that may be longer; a default, a
constraint, an index, a privilege; a file rewritten as it was (`vacuum full`, `cluster`) or emptied by a streamed
`truncate`; a partition that was made empty. Everything else is in doubt, and a table in doubt is copied again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from tailrace.model.table import TableSchema
from tailrace.source.postgres.catalog.definition import Attribute, Definition, Made

_NUMERIC = 1700
_TEXTS = frozenset({25, 1043})
"""Oids: `text` and `varchar`, which print alike."""
_XIDS = 1 << 32
"""After this many transactions their numbers begin again, as the stream and catalog rows have them."""
UNCLEAR = "its columns changed in a way that the catalog no longer shows"


def why_copy(old: Definition, new: Definition) -> str | None:
    """Why a copy made under `old` is not known to be right under `new`; None if it is. An older `new` says nothing."""
    if new.at <= old.at:
        return None
    if new.doubt is not None:
        return new.doubt
    checks: list[Callable[[Definition, Definition], str | None]] = [_names, _listed, _kept, _added, _files, _key]
    if new.partitions is not None:
        checks += [_partitions, _values, _sent, _rewrites, _types]
    return next((reason for check in checks if (reason := check(old, new)) is not None), None)


def why_part(old: Definition, now: Definition, part: TableSchema) -> str | None:
    """Why rows that came from a partition are not known to be in the table: it is gone, and was not there before. What
    was told of it before `old` was read is no matter: a copy made since does not have those rows."""
    if part.definition is None or part.definition["at"] <= old.at or str(part.relation) in (now.partitions or {}):
        return None
    return f"partition {part.table} was filled, and then detached or dropped"


def may_have_made(xid: int, made: Made | None) -> bool:
    """Whether a transaction that filled a table made it, too, itself or in a sub-transaction. Those have later numbers
    than it. So a table with an earlier one was made by another, as was one with a number that was not given yet: its
    numbers are from before they began again. None: only its maker sees it, or it is gone."""
    if made is None:
        return True
    given = (made.xid_end - xid) % _XIDS
    return given < _XIDS // 2 and (made.xid - xid) % _XIDS < given


def _names(old: Definition, new: Definition) -> str | None:
    numbers = {each.name: each.number for each in old.live.values()}
    for each in new.live.values():
        if numbers.get(each.name, each.number) != each.number and numbers[each.name] in new.live:
            return f"column {each.name} is another column now"
    return None


def _listed(old: Definition, new: Definition) -> str | None:
    """A name that the stream listed must have stood for the same column then as now.

    A column whose catalog row has not changed since kept its name. The others are matched by the gap between such
    columns that they stand in: certain if there are as many names as columns; or, where none was dropped, fewer: the
    last ones had not been added yet.
    """
    if new.listed is None:
        return None
    gone = {each.number for each in old.attributes if each.is_dropped}
    stored = [each for each in new.attributes if each.number not in gone and not each.is_unsent]
    kept = {each.number: each.name for each in stored if _is_untouched(each, old)}
    names = list(new.listed)
    for low, high in itertools.pairwise([0, *kept, len(new.attributes) + 1]):
        if high in kept and kept[high] not in names:
            return UNCLEAR
        end = names.index(kept[high]) if high in kept else len(names)
        between, names = names[:end], names[end + 1 :]
        moved = [each for each in stored if low < each.number < high]
        if not _is_certain([new.listed[name] for name in between], moved, is_last=high not in kept):
            return UNCLEAR
    return None


def _is_untouched(attribute: Attribute, old: Definition) -> bool:
    before = old.live.get(attribute.number)
    return before is not None and before.version == attribute.version


def _is_certain(listed: Sequence[int], moved: Sequence[Attribute], *, is_last: bool) -> bool:
    """Whether only these columns of a gap can have been listed."""
    numbers = [each.number for each in moved]
    if list(listed) == numbers:
        return True
    if not listed and all(each.is_dropped for each in moved):
        return True
    return is_last and list(listed) == numbers[: len(listed)] and not any(each.is_dropped for each in moved)


def _kept(old: Definition, new: Definition) -> str | None:
    """Columns that both have."""
    is_rewritten = _is_rewritten(old, new)
    for number, before in old.live.items():
        after = new.live.get(number)
        if after is None:
            continue
        if before.is_unsent != after.is_unsent:
            return f"column {after.name} is {'no longer sent' if after.is_unsent else 'sent now and was not before'}"
        if (before.type, before.typmod) != (after.type, after.typmod) and (
            is_rewritten or not _prints_alike(before, after)
        ):
            return f"column {after.name} was {before.source_type} and is now {after.source_type}"
        if before.version != after.version and is_rewritten:
            return f"the table was rewritten and column {after.name} changed"
    return None


def _prints_alike(before: Attribute, after: Attribute) -> bool:
    """Whether stored values look the same under the new type."""
    if before.type == after.type:
        return before.type != _NUMERIC
    return {before.type, after.type} <= _TEXTS


def _added(old: Definition, new: Definition) -> str | None:
    added = [each for number, each in new.live.items() if number not in old.live and not each.is_unsent]
    for each in added:
        if each.is_missing:
            return f"column {each.name} was added with a default that old rows show"
    if added and _is_rewritten(old, new):
        return f"column {added[0].name} was added and the table was rewritten"
    return None


def _files(old: Definition, new: Definition) -> str | None:
    if old.toast and new.toast != old.toast:
        return "the table was rewritten"
    if not new.toast and not new.is_listed and _is_rewritten(old, new):
        # Nothing tells a table that was unlogged for a while from one that was vacuumed.
        return "the table was rewritten, and may have been unlogged meanwhile"
    return None


def _is_rewritten(old: Definition, new: Definition) -> bool:
    return any(new.files.get(part, file) != file for part, file in old.files.items())


def _key(old: Definition, new: Definition) -> str | None:
    return None if sorted(old.key) == sorted(new.key) else "its key changed"


def _partitions(old: Definition, new: Definition) -> str | None:
    """What happens to a whole partition is not in the stream."""
    before, after = old.partitions or {}, new.partitions or {}
    if any(after[part].attached != before[part].attached for part in before if part in after):
        return "a partition was detached and attached again"
    if before.keys() - after.keys():
        return "a partition was detached or dropped"
    if any(after[part].has_older_rows for part in after.keys() - before.keys()):
        return "a partition was attached with its rows"
    # The first file of a table has its number. So what was done to a partition shows also where it is new to us.
    is_emptied = any(new.files.get(part, int(part)) != int(part) for part in after.keys() - before.keys())
    if before and (is_emptied or _is_rewritten(old, new)):
        return "a partition was emptied or rewritten"
    return None


def _values(old: Definition, new: Definition) -> str | None:
    before, after = old.values or {}, new.values or {}
    if any(after.get(name, text) != text for name, text in before.items()):
        return "an enum label or a composite type that its values show has changed"
    return None


def _sent(old: Definition, new: Definition) -> str | None:
    return None if old.sent == new.sent else "the publication was changed, and changes may have been left out"


def _rewrites(old: Definition, new: Definition) -> str | None:
    """Statistics tell of it a little later, and may forget: whatever number is another one counts."""
    return None if old.rewrites == new.rewrites else "its rows were updated or deleted, and only inserts are sent"


def _types(old: Definition, new: Definition) -> str | None:
    """A copy keeps its lake types. Only a person's choice is followed."""
    for number in sorted(set(old.types.as_text) ^ set(new.types.as_text)):
        if number in new.live:
            is_text = number in new.types.as_text
            return f"column {new.live[number].name} is {'to be copied as text' if is_text else 'no longer to be text'}"
    wanted = dict(new.types.as_decimal)
    for number, _ in sorted(set(old.types.as_decimal) ^ set(new.types.as_decimal)):
        if number in new.live:
            return f"column {new.live[number].name} is to be copied as {wanted.get(number, 'text again')}"
    return None


def numbers_of(names: Sequence[str], attributes: Sequence[Attribute]) -> list[int] | None:
    """The numbers of a table's columns as the stream once listed them; None where the catalog does not tell.

    The stream lists the columns that are sent in the order of their numbers. So a name that the catalog no longer
    has stands for a column that was dropped or renamed since, in the gap between its neighbours; if there are just as
    many of those as unknown names, each is the one.
    """
    stored = {each.number: each.name for each in attributes if each.is_dropped or not each.is_unsent}
    known = {each.name: each.number for each in attributes if each.number in stored and not each.is_dropped}
    nameless = [number for number, name in stored.items() if known.get(name) != number or name not in names]
    found: list[int] = []
    unknown = 0
    for number in [*(known.get(name) for name in names), len(attributes) + 1]:
        if number is None:
            unknown += 1
            continue
        gap = [each for each in nameless if (found[-1] if found else 0) < each < number]
        if unknown and len(gap) != unknown:
            return None
        found += [*gap[:unknown], number]
        unknown = 0
    found.pop()
    live = {number for number in known.values() if found and number < found[-1]}
    return found if found == sorted(found) and live <= set(found) else None
