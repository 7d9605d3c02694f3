"""Secrets that a configuration refers to: `${env:NAME}`, `${file:PATH}`, `${file:PATH:KEY}`; and what may be shown.

A value is looked up when a connector starts, never stored, and hidden: it is masked in every message of this process,
whichever property it is for. `$${` is a `${` that is meant as it stands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tailrace.configuration._java_properties import parse_properties
from tailrace.configuration._text_files import read_text
from tailrace.configuration.properties import MASK, is_secret, words_of
from tailrace.errors import DefiniteError
from tailrace.hidden import hide

SECRET_CHARACTERS_MAX = 64 << 10
"""More in a file is no secret."""
_REFERENCE = re.compile(r"(?P<escaped>\$\$\{)|\$\{(?:(?P<provider>env|file):(?P<rest>[^{}]*)\})?")
_LOGIN = re.compile(r"://[^/@\s]*:[^/@\s]*@")
"""A password in an address."""
_FORMS = "${env:NAME}, ${file:PATH} and ${file:PATH:KEY}"


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
    hidden = {key for key, value in redacted(old).items() if value == MASK}
    return {key: old[key] if value == MASK and key in hidden else value for key, value in new.items()}


def require_given_again(new: Mapping[str, str], old: Mapping[str, str]) -> None:
    """A definite error where the stored password, which `new` shows as its mask, would be sent to another server, for
    another user or under other rules than it was given for."""
    words = words_of(old)
    if new.get(words.password) != MASK or redacted(old).get(words.password) != MASK:
        return
    changed = [key for key in words.destination if new.get(key) != old.get(key)]
    if changed:
        raise DefiniteError(
            f"{', '.join(changed)}: changed, so the stored password is not used",
            f"give the password again with it: {words.password}",
        )


def shown(key: str, value: str, properties: Mapping[str, str]) -> str:
    """One value as it may be shown."""
    if _LOGIN.search(value) or (value and is_secret(key, properties) and not is_reference(value)):
        return MASK
    return value


def is_reference(text: str) -> bool:
    """Whether the text is a reference and nothing else."""
    reference = _REFERENCE.fullmatch(text)
    return reference is not None and reference["provider"] is not None


def has_reference(text: str) -> bool:
    """Whether anything of the text is looked up."""
    return any(reference["provider"] is not None for reference in _REFERENCE.finditer(text))


def _value(reference: re.Match[str]) -> str:
    if reference["escaped"] is not None:
        return "${"
    if reference["provider"] is None:
        # What follows may be a part of a password.
        raise SecretError(f"has a ${{ that begins none of {_FORMS}; write $${{ for one that is meant as it stands")
    value = _environment(reference["rest"]) if reference["provider"] == "env" else _file(reference["rest"])
    hide(value)
    return value


def _environment(name: str) -> str:
    if name not in os.environ:
        raise SecretError(f"${{env:{name}}}: the environment has no such variable")
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
        text = read_text(Path(path), f"${{file:{rest}}}: the file")
    except DefiniteError as error:
        raise SecretError(error.message) from None
    if len(text) > SECRET_CHARACTERS_MAX:
        raise SecretError(f"${{file:{rest}}}: the file has more than {SECRET_CHARACTERS_MAX:,} characters")
    return text
