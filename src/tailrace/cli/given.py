"""Options that set properties: declared from the properties, and read as a configuration is.

A command has a parameter `given: Given`. In its place a person finds all options of that command
(`configuration.options`), with the types, limits and defaults of their properties. What is wrong is told by option.

A command's parameter `lake` is a text to a person, and to the command the address that it comes to.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailrace.cli.errors import shown_errors
from tailrace.configuration.options import options_of
from tailrace.configuration.problems import ConfigurationError
from tailrace.configuration.properties import CLASS, Property, Type, property_of
from tailrace.model.lake_address import LakeAddress, parse_lake
from tailrace.source.door.words import CommandOption
from tailrace.source.kinds import all_words, words_for

if TYPE_CHECKING:
    from tailrace.configuration.reading import Configuration
    from tailrace.settings import ConnectorSettings

PARAMETER = "given"
LAKE = "lake"


@dataclass(frozen=True)
class Given:
    """What a person gave a command, by option. Nothing of it has been looked at yet."""

    command: str
    values: Mapping[CommandOption, Any]

    def configuration(self, dsn: str, lake: LakeAddress = Path()) -> Configuration:
        """Of the source that a connection string names."""
        from tailrace.configuration.reading import read

        words = words_for(dsn)
        fixed = {"name": self.command, CLASS: words.classes[-1], "lake.path": "lake"}
        with self._told_by_option({words.whole_address: "DSN"}):
            configuration = read(
                self._properties() | fixed | {words.whole_address: _as_it_stands(dsn)}, lists=self._lists()
            )
        # A folder's name is taken as it is, with blanks and all.
        return replace(configuration, settings=replace(configuration.settings, lake=lake))

    def settings(self, lake: LakeAddress = Path()) -> ConnectorSettings:
        """Of a command without a source."""
        from tailrace.configuration.reading import read_settings

        with self._told_by_option():
            return read_settings(self._properties(), lake, self._lists())

    def named(self, option: str) -> str | None:
        """What was given for an option, as it is."""
        return next((value for each, value in self.values.items() if each.name == option), None)

    def written(self) -> dict[str, str]:
        """What was given, as properties for people to read: a list's items as they are, tables as patterns."""
        return self._properties() | {key: ", ".join(items) for key, items in self._lists().items()}

    def _properties(self) -> dict[str, str]:
        return {
            option.key: _as_it_stands(_text(option, value))
            for option, value in self.values.items()
            if value not in (None, False) and not isinstance(value, list)
        }

    def _lists(self) -> dict[str, list[str]]:
        lists: dict[str, list[str]] = {}
        for option, value in self.values.items():
            if isinstance(value, list):
                lists.setdefault(option.key, []).extend(map(option.item, value))
        return lists

    @contextmanager
    def _told_by_option(self, others: Mapping[str, str] | None = None) -> Iterator[None]:
        """Problems name what a person wrote: `--log-quota`, not `log.quota`."""
        names = {option.key: f"--{option.name}" for option in reversed(list(self.values))} | dict(others or {})
        keys = re.compile("|".join(rf"(?<![\w.]){re.escape(key)}(?![\w.])" for key in sorted(names, key=len)[::-1]))
        try:
            yield
        except ConfigurationError as error:
            problems = {
                names.get(key, key): [keys.sub(lambda key: names[key[0]], each) for each in several]
                for key, several in error.problems.items()
            }
            raise ConfigurationError(problems, f"every option: tailrace {self.command} --help") from None


def with_options(command: str, function: Callable[..., None]) -> Callable[..., None]:
    """The function with the options of a command in place of its parameter `given`, and with a text for its `lake`; if
    it has those."""
    signature = inspect.signature(function, eval_str=True)
    is_optioned = PARAMETER in signature.parameters
    options = {option.name.replace("-", "_"): option for option in options_of(command)} if is_optioned else {}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        is_given = parameter.name == PARAMETER
        parameters += [_parameter(*each) for each in options.items()] if is_given else [_as_text(parameter)]
    has_lake = LAKE in signature.parameters
    parameters += _OF_LAKES if has_lake else []

    @wraps(function)
    def run(**arguments: Any) -> None:
        values = {option: arguments.pop(name) for name, option in options.items()}
        if has_lake:
            with shown_errors():
                arguments[LAKE] = _lake(arguments[LAKE], *(arguments.pop(each.name) for each in _OF_LAKES))
        if is_optioned:
            arguments[PARAMETER] = Given(command, values)
        function(**arguments)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _lake(text: str | None, home: str | None, options: list[str] | None) -> LakeAddress | None:
    if text is None:
        return None
    from tailrace.configuration.secrets import resolved
    from tailrace.storage.bucket_place import options_of as storage_options

    given = storage_options(options or ())
    return parse_lake(text, [(name, resolved(value)) for name, value in given.items()], Path(home) if home else None)


def _option(name: str, kind: Any, metavar: str, words: str) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(f"--{name}", metavar=metavar, help=words)]
    name = name.replace("-", "_")
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_OF_LAKES = [
    _option("home", str | None, "FOLDER", "Of a lake in a bucket: the local folder for its log and state."),
    _option("storage-option", list[str] | None, "KEY=VALUE", "How a bucket's store is reached: region=… Repeatable."),
]
"""What every command takes beside its lake."""


def _as_text(parameter: inspect.Parameter) -> inspect.Parameter:
    """What names a lake is a text; everything else stays."""
    if parameter.name != LAKE:
        return parameter
    is_optional = parameter.default is None
    words = parameter.annotation.__metadata__
    return parameter.replace(annotation=Annotated[str | None if is_optional else str, *words])


def _parameter(name: str, option: CommandOption) -> inspect.Parameter:
    kind, default = _declared(option, _property(option))
    words = typer.Option(f"--{option.name}", metavar=option.metavar, help=option.help, min=_least(option))
    declared = Annotated[kind, words]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=declared)


def _declared(option: CommandOption, known: Property) -> tuple[Any, Any]:
    """The type of an option and its default."""
    if known.type is Type.BOOLEAN:
        return bool, False
    if known.type is Type.LIST or known.is_family:
        return list[str] | None, None
    if known.values:
        choices = StrEnum(option.name, {value: value for value in known.values})  # type: ignore[misc]
        return choices, None if known.default is None else choices(known.default)
    if known.type is Type.INT:
        number = None if known.default is None else int(known.default)
        if option.in_seconds:
            return float, (number or 0) / 1000
        return (int | None, None) if number is None else (int, number)
    return (str | None, None) if known.default is None else (str, known.default)


def _least(option: CommandOption) -> float | None:
    least = _property(option).minimum
    return least / 1000 if option.in_seconds and least is not None else least


def _property(option: CommandOption) -> Property:
    kinds: list[dict[str, str]] = [{CLASS: words.classes[-1]} for words in all_words()]
    return next(known for kind in kinds or [{}] if (known := property_of(option.key, kind)) is not None)


def _text(option: CommandOption, value: Any) -> str:
    if value is True:
        return "true"
    return str(round(value * 1000)) if option.in_seconds else str(value)


def _as_it_stands(value: str) -> str:
    """Nothing of it is looked up."""
    return value.replace("${", "$${")
