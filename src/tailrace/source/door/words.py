"""The words of a source: what people write who configure it, whatever they write it in.

A configuration has properties, a command line has options, a statement has clauses. Which of them are about a
particular database is known to its words alone, and the rooms that read them ask here. Words need no connection and
load no driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tailrace.source.door.property import Property


@dataclass(frozen=True)
class CommandOption:
    """An option of the command line that sets a property. It has the property's type, values and default, but names
    tables by patterns, where the property has regular expressions."""

    name: str
    """Without the dashes."""
    key: str
    """The property. Of a family, `KEY=VALUE` is given."""
    help: str
    commands: Sequence[str]
    """Those that have it."""
    metavar: str | None = None
    in_seconds: bool = False
    """What is given are seconds, where the property counts milliseconds."""
    item: Callable[[str], str] = str
    """What one of several values that are given is in the property."""


class GivenProperties(Protocol):
    """A configuration that is being read. A problem or a warning belongs to a key, and never repeats a secret."""

    def text(self, key: str) -> str | None:
        """The value, with secrets looked up; None for a key that is not given or cannot be read."""
        ...

    def is_on(self, key: str) -> bool:
        """Whether a flag is given and true."""
        ...

    def items(self, key: str) -> list[str]:
        """The items of a list."""
        ...

    def table_patterns(self, key: str) -> list[str]:
        """The tables that a list names, as patterns."""
        ...

    def has_problem(self, key: str) -> bool: ...

    def refuse(self, key: str, problem: str) -> None: ...

    def require(self, key: str, problem: str) -> None:
        """Refuse a key that is missing, unless it has a problem already, which is why its value is missing."""
        ...

    def warn(self, key: str, warning: str) -> None: ...


class SourceWords(Protocol):
    """How people name a kind of source and everything that can be said of one."""

    @property
    def kind(self) -> str:
        """As `source.kinds` has it."""
        ...

    @property
    def name(self) -> str:
        """As people call the database."""
        ...

    @property
    def classes(self) -> Sequence[str]:
        """The values of `connector.class` that mean it: Debezium's, then ours."""
        ...

    @property
    def schemes(self) -> Sequence[str]:
        """How its connection strings begin, before `://`."""
        ...

    @property
    def example_dsn(self) -> str:
        """What a connection string looks like."""
        ...

    @property
    def properties(self) -> Sequence[Property]:
        """Its own properties, each in a group; a group of the configuration's, or one of its own."""
        ...

    @property
    def whole_address(self) -> str:
        """The property that holds a whole connection string."""
        ...

    @property
    def password(self) -> str:
        """The property that holds the password."""
        ...

    @property
    def destination(self) -> Sequence[str]:
        """The properties that say who gets the password, and how."""
        ...

    @property
    def reservation(self) -> str:
        """The property that names what `Stream.reserved` keeps from other connectors."""
        ...

    @property
    def sql_names(self) -> Sequence[str]:
        """What stands after `FROM` in a statement; the first is printed."""
        ...

    @property
    def clauses(self) -> Mapping[str, str]:
        """The properties that clauses of a statement stand for, in the order in which they are printed. Has `host`, a
        name or a whole address, and `database`."""
        ...

    @property
    def default_namespace(self) -> str:
        """The namespace of a table that is given by its name alone."""
        ...

    @property
    def options(self) -> Sequence[CommandOption]:
        """Its options of `sync`, `doctor`, `verify`, `import` and `drop`."""
        ...

    @property
    def leftover(self) -> str:
        """What a connector leaves at the source, by the word that claims and options have for it."""
        ...

    @property
    def phrases(self) -> Mapping[str, str]:
        """What texts for people say of this kind of source, by what stands for it there in braces: `name`, `kind`,
        `example`, `dsn`, `position`, `position_word`, `made`, `left`, `holds`, `kept`, `adopted`, `adopting` and
        `continuing`."""
        ...

    def dsn(self, given: GivenProperties) -> str:
        """The connection string. Refuses what does not fit together."""
        ...

    def arguments(self, given: GivenProperties) -> dict[str, Any]:
        """What the source's class takes beside the connection string. Refuses what does not fit together."""
        ...

    def address(self, text: str) -> dict[str, str]:
        """The properties that say the same as a host or a whole address. What they cannot say is kept whole, as
        `whole_address`."""
        ...

    def adopting(self, arguments: Mapping[str, Any], *, is_new: bool) -> dict[str, Any]:
        """The arguments of a source that takes over from a Debezium connector: where a person names nothing, what
        Debezium would use. A lake that is not new keeps what it has."""
        ...

    def require_adoptable(self, arguments: Mapping[str, Any]) -> None:
        """A definite error, whose hint is a property with its value, for arguments that do not name what is to be
        taken over."""
        ...
