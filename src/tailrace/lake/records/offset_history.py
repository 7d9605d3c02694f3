"""The history of a lake's offsets: every edit, with who made it, when, what was before and what after. A file of lines
that grows at its end.

An edit is a line, durable before anything comes of it. What it asks for waits until a connector starts and takes it up;
then another line says so. A connector that dies in between takes it up again: an edit that is in the history is always
finished.

The numbers of edits are dense. Whoever edits says which number he has seen last, so that of two editors one wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.storage.files import LINE_BYTES_MAX, append_line

Wire = Mapping[str, Any]


class EditKind(StrEnum):
    """What a person did."""

    SET = "set"
    RESET = "reset"
    UNDO = "undo"
    IMPORT = "import"


class EditState(StrEnum):
    """What became of an edit. Found from the lines that follow it."""

    WAITING = "waiting"
    """For the next start of a connector. Next: taken or undone."""
    TAKEN = "taken"
    """A connector has taken it up."""
    UNDONE = "undone"
    """Another edit has taken it back."""


@dataclass(frozen=True)
class Effect:
    """What an edit does when it is taken up. Stored with it, so that a crash changes nothing about it."""

    claim: Wire | None = None
    """The lake's claim from then on; None: as it was."""
    was: Wire | None = None
    """The claim before, where this one has another; None: there was none."""
    position: int | None = None
    """The source must have got to here: nothing that committed before it will be taken."""
    copy_again: str | None = None
    """Why every table is copied again; None: none is."""
    leave: Wire | None = None
    """What the lake claimed before and is removed at the source."""
    by_windows: bool = False
    """First copies of tables go by windows."""


@dataclass(frozen=True)
class OffsetEdit:
    """One edit."""

    version: int
    kind: EditKind
    who: str
    time_us: int
    """Microseconds since 1970-01-01 UTC."""
    before: Sequence[Wire]
    """Entries, `{"partition": {...}, "offset": {...}}`."""
    after: Sequence[Wire]
    effect: Effect = field(default_factory=Effect)
    server: str | None = None
    """The name that the lake's partition has since; None: as it was."""
    undoes: int | None = None
    """The edit that this one takes back."""
    says: str = ""
    """What follows for the lake, for a person."""
    state: EditState = EditState.WAITING

    def to_json(self) -> str:
        fields = asdict(self)
        del fields["state"]
        return json.dumps({"edit": fields}, separators=(",", ":"))


class OffsetHistory:
    """`offsets.jsonl`. Whoever appends holds the lake's lock; any process reads."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, edit: OffsetEdit) -> None:
        """Durable when this returns."""
        line = edit.to_json()
        if len(line) >= LINE_BYTES_MAX:
            raise DefiniteError("the offset is too large to be kept in the history", "leave out what is not needed")
        append_line(self._path, line)

    def took(self, version: int, time_us: int) -> None:
        """A connector has taken this edit up. Durable when this returns."""
        append_line(self._path, json.dumps({"taken": {"version": version, "time_us": time_us}}))

    def all(self) -> list[OffsetEdit]:
        """Oldest first, each with what became of it."""
        edits, taken = self._read()
        undone = {edit.undoes for edit in edits}
        return [_with_state(edit, is_taken=edit.version in taken, is_undone=edit.version in undone) for edit in edits]

    def waiting(self) -> list[OffsetEdit]:
        """What the next start has to take up, oldest first."""
        return [edit for edit in self.all() if edit.state is EditState.WAITING]

    @property
    def version(self) -> int:
        """Of the newest edit; 0 without one."""
        edits, _ = self._read()
        return edits[-1].version if edits else 0

    def _read(self) -> tuple[list[OffsetEdit], set[int]]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return [], set()
        edits, taken = [], set()
        for number, line in enumerate(content[: content.rfind(b"\n") + 1].splitlines(), 1):
            try:
                found = json.loads(line)
                if "taken" in found:
                    taken.add(found["taken"]["version"])
                else:
                    edits.append(_edit(found["edit"]))
            except (ValueError, KeyError, TypeError, AttributeError):
                message = f"{self._path} is damaged in line {number}"
                raise DefiniteError(message, "restore it from a backup") from None
        return edits, taken


def _edit(fields: dict[str, Any]) -> OffsetEdit:
    kind, effect = EditKind(fields.pop("kind")), Effect(**fields.pop("effect"))
    return OffsetEdit(kind=kind, effect=effect, **fields)


def _with_state(edit: OffsetEdit, *, is_taken: bool, is_undone: bool) -> OffsetEdit:
    state = EditState.UNDONE if is_undone else EditState.TAKEN if is_taken else EditState.WAITING
    return replace(edit, state=state)
