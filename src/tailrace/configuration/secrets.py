"""Secrets that a configuration refers to: `${env:NAME}`, `${file:PATH}`, `${file:PATH:KEY}`; and what may be shown.

A value is looked up when a connector starts, never stored, and never part of a message: what is wrong is said with the
reference. `$${` is a `${` that is meant as it stands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tailrace.configuration._java_properties import parse_properties
from tailrace.configuration.properties import MASK, is_secret
from tailrace.errors import DefiniteError

_REFERENCE = re.compile(r"(?P<escaped>\$\$\{)|\$\{(?P<provider>[^:{}]*):(?P<rest>[^{}]*)\}")


class SecretError(DefiniteError):
    """A reference that leads nowhere; names the reference, never a value."""


def resolved(text: str) -> str:
    """The text with every reference replaced by what it refers to. What a secret holds is not looked at again."""
    return _REFERENCE.sub(_value, text)


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """What may be shown: of a secret only references, and `********` in place of a value that was given itself."""
    return {key: shown(key, value, properties) for key, value in properties.items()}


def unredacted(new: Mapping[str, str], old: Mapping[str, str]) -> dict[str, str]:
    """`new` with the secrets of `old` where it only has what `redacted` shows of them."""
    return {
        key: old[key] if value == MASK and key in old and is_secret(key, old) else value for key, value in new.items()
    }


def shown(key: str, value: str, properties: Mapping[str, str]) -> str:
    """One value as it may be shown."""
    is_plain = not is_secret(key, properties) or not value or _is_reference(value)
    return value if is_plain else MASK


def _is_reference(text: str) -> bool:
    found = _REFERENCE.fullmatch(text)
    return found is not None and found["escaped"] is None


def _value(found: re.Match[str]) -> str:
    if found["escaped"] is not None:
        return "${"
    provider, rest = found["provider"], found["rest"]
    if provider == "env":
        return _environment(rest)
    if provider == "file":
        return _file(rest)
    raise SecretError(f"{found[0]} is no secret that can be looked up; known are ${{env:NAME}} and ${{file:PATH}}")


def _environment(name: str) -> str:
    if name not in os.environ:
        raise SecretError(f"${{env:{name}}}: the environment has no {name or 'variable without a name'}")
    return os.environ[name]


def _file(rest: str) -> str:
    """A whole file, or one key of a properties file. A path with a colon in it is taken whole where it is a file."""
    path, separator, key = rest.rpartition(":")
    if not separator or Path(rest).is_file():
        return _text(rest, rest).strip()
    entries = parse_properties(_text(path, rest))
    if key not in entries:
        raise SecretError(f"${{file:{rest}}}: the file has no key {key}")
    return entries[key]


def _text(path: str, rest: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        # The text of a decoding error has bytes of the file in it.
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise SecretError(f"${{file:{rest}}}: the file cannot be read: {(reason or 'unknown').lower()}") from None
