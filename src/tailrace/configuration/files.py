"""Files that hold one configuration, and what of JSON and YAML becomes Kafka Connect's flat texts.

A number or a flag stays as it is written: `0123` in a YAML file is a password of four characters, not 83.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tailrace.configuration._java_properties import parse_properties
from tailrace.configuration._text_files import read_text
from tailrace.errors import DefiniteError

NESTING_MAX = 20
_KEPT_TAGS = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")


class _TextLoader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML whose scalars are text, or nothing."""

    yaml_implicit_resolvers = {  # noqa: RUF012  the parent's name for it
        first: [(tag, expression) for tag, expression in resolvers if tag in _KEPT_TAGS]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _require_once([str(key.value) for key, _ in node.value])
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def load(path: Path) -> dict[str, str]:
    """The properties in a `.yaml`, `.json` or `.properties` file. The file's own name is the connector's, unless the
    file gives one. No secret is looked up."""
    return {"name": path.stem} | normalised(_unwrapped(_parsed(path, read_text(path, str(path)))))


def normalised(raw: Mapping[str, Any]) -> dict[str, str]:
    """Flat texts: nesting becomes dots, a list is joined by commas, null is left out."""
    texts: dict[str, str] = {}
    for key, value in _flat("", raw):
        if texts.setdefault(key, value) != value:
            raise DefiniteError(f"{key} is there twice, with different values", "leave one of them out")
    return texts


def _flat(prefix: str, value: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    if depth > NESTING_MAX:
        raise DefiniteError(f"the configuration is nested deeper than {NESTING_MAX} levels", "write keys with dots")
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), each, depth + 1)
    elif isinstance(value, list | tuple):
        if any(isinstance(each, Mapping | list | tuple) for each in value):
            raise DefiniteError(f"{prefix} is a list of more than texts", "a list has texts and numbers alone")
        yield prefix, ",".join(_text(each) for each in value if each is not None)
    elif value is not None:
        yield prefix, _text(value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _require_once([key for key, _ in pairs])
    return dict(pairs)


def _require_once(keys: list[str]) -> None:
    for key, count in Counter(keys).items():
        if count > 1:
            raise DefiniteError(f"{key} is there twice", "leave one of them out")


def _parsed(path: Path, text: str) -> Mapping[str, Any]:
    # What the parsers say of a mistake repeats the text around it, which may be a secret.
    try:
        match path.suffix.lower():
            case ".yaml" | ".yml":
                parsed = yaml.load(text, _TextLoader)
            case ".json":
                parsed = json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=_object)
            case ".properties":
                parsed = parse_properties(text)
            case _:
                raise DefiniteError(f"{path} is no configuration by its name", "call it .yaml, .json or .properties")
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
        raise DefiniteError(f"{path}{line}: that is not YAML", "check quotes and indentation there") from None
    except json.JSONDecodeError as error:
        raise DefiniteError(f"{path}, line {error.lineno}: that is not JSON: {error.msg.lower()}") from None
    except RecursionError:
        raise DefiniteError(f"{path} is nested too deeply") from None
    except yaml.YAMLError:
        raise DefiniteError(f"{path} is not YAML", "it has a character that YAML does not allow") from None
    if not isinstance(parsed, Mapping):
        raise DefiniteError(f"{path} has no keys", "write one a line: database.hostname: 127.0.0.1")
    return parsed


def _unwrapped(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is sent to Kafka Connect for a new connector has the configuration one level down."""
    config = raw.get("config")
    if set(raw) <= {"name", "config"} and isinstance(config, Mapping):
        return {"name": raw.get("name")} | dict(config)
    return raw
