"""Whether a copy of a table can go on after its definition moved: a pure decision, old and new definition in, a reason
to copy the table again out.

Harmless, by proof: a column added that is null in old rows, dropped or renamed; text that may be longer; a default, a
constraint, an index, a privilege; a file rewritten as it was (`vacuum full`, `cluster`) or emptied by a streamed
`truncate`; a partition that was made empty. Everything else is in doubt, and a table in doubt is copied again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailrace.source.postgres._definition import Attribute, Definition

_NUMERIC = 1700
_TEXTS = frozenset({25, 1043})
"""Oids: `text` and `varchar`, which print alike."""


def why_copy(old: Definition, new: Definition) -> str | None:
    """Why a copy made under `old` is not known to be right under `new`; None if it is. An older `new` says nothing."""
    if new.doubt is not None:
        return new.doubt
    if new.at <= old.at:
        return None
    checks: list[Callable[[Definition, Definition], str | None]] = [_names, _kept, _added, _files, _key]
    if new.partitions is not None:
        checks += [_partitions, _values, _sent]
    return next((reason for check in checks if (reason := check(old, new)) is not None), None)


def _names(old: Definition, new: Definition) -> str | None:
    """Changes in between may have come under a name that stood for another column then."""
    numbers = {each.name: each.number for each in old.live.values()}
    for each in new.live.values():
        if numbers.get(each.name, each.number) != each.number:
            return f"column {each.name} is another column now"
    known = {each.number for each in old.attributes}
    if any(each.is_dropped and each.number not in known for each in new.attributes):
        return "a column was added and dropped again"
    return None


def _kept(old: Definition, new: Definition) -> str | None:
    """Columns that both have."""
    is_rewritten = _is_rewritten(old, new)
    for number, before in old.live.items():
        after = new.live.get(number)
        if after is None:
            continue
        if before.is_generated != after.is_generated:
            return f"column {after.name} is no longer computed"
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
    added = [each for number, each in new.live.items() if number not in old.live and not each.is_generated]
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
    if before and _is_rewritten(old, new):
        return "a partition was emptied or rewritten"
    return None


def _values(old: Definition, new: Definition) -> str | None:
    before, after = old.values or {}, new.values or {}
    if any(after.get(name, text) != text for name, text in before.items()):
        return "an enum label or a composite type that its values show has changed"
    return None


def _sent(old: Definition, new: Definition) -> str | None:
    return None if old.sent == new.sent else "the publication was changed, and changes may have been left out"


def numbers_of(names: Sequence[str], attributes: Sequence[Attribute]) -> list[int] | None:
    """The numbers of a table's columns as the stream once listed them; None where the catalog does not tell.

    The stream lists the columns in the order of their numbers. A name that is gone belongs to a dropped column, if
    there are just as many of those in the gap. A column that is there now and has a smaller number than the last one
    listed must be listed: otherwise it had another name then.
    """
    live = {each.name: each.number for each in attributes if not each.is_dropped and not each.is_generated}
    dropped = [each.number for each in attributes if each.is_dropped]
    found: list[int] = []
    unknown = 0
    for name in [*names, None]:
        number = live.get(name) if name is not None else len(attributes) + 1
        if number is None:
            unknown += 1
            continue
        last = found[-1] if found else 0
        gap = [each for each in dropped if last < each < number]
        if unknown and len(gap) != unknown:
            return None
        found += [*gap[:unknown], number]
        unknown = 0
    found.pop()
    if found != sorted(found):
        return None
    skipped = {number for number in live.values() if found and number < found[-1]} - set(found)
    return None if skipped else found
