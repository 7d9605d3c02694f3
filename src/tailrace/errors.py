"""The two kinds of error a person or a supervisor can act on.

A *transient* error may go away by itself: the room that meets it retries with backoff.
A *definite* error stays until a person does something: it stops the work it concerns and
carries a hint that says what to do, if possible one that can be pasted.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tailrace.hidden import masked


class TailraceError(Exception):
    """One lowercase line for a person, a hint where there is one, and the table it concerns where it is only one's.
    Nothing that a reference of a configuration led to is in it."""

    def __init__(self, message: str, hint: str | None = None, table: str | None = None) -> None:
        self.message = masked(message)
        self.hint = hint if hint is None else masked(hint)
        super().__init__(self.message)
        self.table = table
        if hint is not None:
            # A traceback in a person's own program shows notes.
            self.add_note(f"hint: {self.hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it travels from a task to the driver with all that it knows."""
        return _again, (type(self), self._known())

    def to_fields(self) -> dict[str, Any]:
        """The same for JSON: it travels to a process that must not unpickle what this one sends."""
        kinds = [_name(kind) for kind in type(self).__mro__ if issubclass(kind, TailraceError)]
        return {"kinds": kinds, "known": self._known()}

    @staticmethod
    def from_fields(fields: Mapping[str, Any]) -> TailraceError:
        """The error that these fields tell of: of its own kind, or of the nearest one that this process has loaded."""
        loaded = {_name(kind): kind for kind in _kinds(TailraceError)}
        kind = next(loaded[name] for name in fields["kinds"] if name in loaded)
        return _again(kind, fields["known"])

    def _known(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "__notes__"}


def _again(kind: type[TailraceError], known: Mapping[str, Any]) -> TailraceError:
    error = kind.__new__(kind)
    vars(error).update(known)
    # Masks what is hidden here, which the process that sent it need not know.
    TailraceError.__init__(error, known["message"], known["hint"], known["table"])
    return error


def _kinds(kind: type[TailraceError]) -> Iterator[type[TailraceError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


def _name(kind: type[TailraceError]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


class TransientError(TailraceError):
    """May succeed when tried again: a dropped connection, a slot still held by a dying backend."""


class StoreError(TransientError):
    """The store that a lake lies in did not answer, or not as it should. What a run has in hand is tried again."""


class DefiniteError(TailraceError):
    """Stays until a person acts: a wrong password, a missing privilege, a damaged segment."""


class ResyncError(DefiniteError):
    """One table's copy cannot continue from where it is. The connector copies the table again by itself."""

    @classmethod
    def of(cls, table: object, reason: str) -> ResyncError:
        return cls(f"{table}: {reason}", "it is copied again by a running or the next tailrace sync", str(table))


class TextKeyError(ResyncError):
    """A table's key has a value that its columns cannot hold. The connector copies the table again, with these columns
    as text."""

    relation: int = 0
    """The source's number for the table."""
    columns: Sequence[int | str] = ()
    """What identifies each of them in it."""

    @classmethod
    def found(cls, table: object, reason: str, relation: int, columns: Sequence[int | str]) -> TextKeyError:
        error = cls(f"{table}: {reason}", cls.of(table, reason).hint, str(table))
        error.relation, error.columns = relation, columns
        return error


class GapError(DefiniteError):
    """The source no longer has changes that the log lacks: every table has to be copied again."""


class DamageError(DefiniteError):
    """A file of the log is not what was written. It concerns every table, whichever one met it."""


class LeaseLostError(DefiniteError):
    """Another process has the lake's place by now, or could have it: whoever meets it, the run must end."""


class MovedError(DefiniteError):
    """The source is not where it was when the run began, and nothing is lost: a run that begins again continues."""


class PreflightError(DefiniteError):
    """Everything that keeps a copy from being started, each problem with its own hint."""

    def __init__(self, problems: Sequence[tuple[str, str | None]]) -> None:
        super().__init__("; ".join(message for message, _ in problems), "\n".join(hint for _, hint in problems if hint))
        self.problems = problems


FULL = (errno.ENOSPC, errno.EDQUOT)


def passing(error: Exception, table: str | None = None) -> TransientError | None:
    """What the machine lacks for a while, such as room on its disk, as a transient error; None for any other."""
    if isinstance(error, FileNotFoundError | ConnectionError):
        return None
    text = str(error)
    number = error.errno if isinstance(error, OSError) else None
    # Of what the JVM meets, only the text comes here.
    told = next((each for each in (errno.ENOSPC, errno.EMFILE) if os.strerror(each) in text), number)
    if told is None:
        return None
    hint = "make room on the disk: it continues by itself" if told in FULL else "it is tried again by itself"
    path = getattr(error, "filename", None)
    what = f"{os.strerror(told).lower()}{f': {path}' if path else ''}"
    return TransientError(f"{table}: {what}" if table else what, hint, table)


def unexpected(error: Exception, table: str) -> DefiniteError:
    """An unforeseen error, as an error of its table."""
    first_line = (str(error) or type(error).__name__).strip().splitlines()[0]
    hint = f"the details are in _tailrace/tailrace.log; to copy it again: tailrace tables resync LAKE {table}"
    return DefiniteError(f"{table}: unexpected: {first_line[:300]}", hint, table)
