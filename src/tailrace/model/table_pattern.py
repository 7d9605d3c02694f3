r"""Which tables a person means: one value for patterns as on a command line and for Debezium's regular expressions.

    public.*, orders           a pattern: with a dot for `namespace.name`, without one for the name in any namespace
    /public\.(orders|item.)/   an expression: matched as Debezium has Java match it, against the whole `namespace.name`,
                               in any case of ASCII letters
    /…/ in /public|sales/      the same, of tables in namespaces that another expression matches; the first may be empty

A text means one thing, and travels as text. An expression becomes a Python expression that matches exactly what Java's
matches. What has no exact equal is refused, and so is what could take long: a group that repeats. Pure.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache

from tailrace.errors import DefiniteError

_ITEM = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)
_ESCAPE = r"\\[^A-Za-z0-9]"
_KIND = r"\\[dDwWsS]"
_TOKEN = re.compile(
    rf"(?:(?P<literal>{_ESCAPE}|[^][(){{}}*+?|^$\\.])|(?P<any>\.)|(?P<kind>{_KIND})"
    rf"|(?P<set>\[\^?(?:{_ESCAPE}|{_KIND}|[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[^][\\&|~^-])+\]))"
    r"(?P<times>(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})[?+]?)?"
    r"|(?P<open>\((?:\?:|(?!\?)))|(?P<close>\)\??)|(?P<or>\|)",
    re.DOTALL,
)
_ANY = r"[^\n\r\x85\u2028\u2029]"
"""Java's dot."""
_TEXT = re.compile(r"/((?:\\.|[^/\\])*)/(?: in /((?:\\.|[^/\\])*)/)?", re.DOTALL)


_SLASH = re.compile(r"(\\.)|/", re.DOTALL)
GROUPS_MAX = 50
OPTIONAL, REPEATED = 1, 4
CHOICES_MAX = 16
"""What a `?` and a `.*` count for, and how much one way through an expression may have: four repetitions try some ten
million ways at worst, with names of 63 letters."""


class ExpressionError(DefiniteError):
    """An expression whose meaning in Java cannot be told exactly."""


@dataclass(frozen=True)
class Expression:
    """One of Debezium's expressions. A `|` separates alternatives only inside groups."""

    text: str
    """Without the `^` and `$` that say what holds anyway, and with slashes escaped."""
    literal: str | None
    """The one text that it matches, as it is written; None if there are more."""

    def is_within(self, namespaces: Sequence[Expression]) -> bool:
        """Whether the one table that it names may lie in a namespace that one of these matches."""
        dots = [at for at, letter in enumerate(self.literal or "") if letter == "."]
        return any(_compiled(each.text).fullmatch((self.literal or "")[:at]) for each in namespaces for at in dots)


def split_list(text: str) -> list[str]:
    """The items of a comma-separated list. A comma after a backslash belongs to its item."""
    return [item.strip() for item in _ITEM.findall(text) if item.strip()]


def escaped(name: str) -> str:
    """The expression that matches a name."""
    return "".join(each if each.isalnum() or each == "_" else f"\\{each}" for each in name)


def exact_pattern(name: str) -> str:
    """The pattern that matches one text."""
    pattern = glob.escape(name)
    return f"[/]{pattern[1:]}" if pattern.startswith("/") else pattern


def parse_expression(written: str) -> list[Expression]:
    """Every alternative of an expression. An `ExpressionError` where its meaning in Java cannot be told exactly."""
    text = written.removeprefix("^")
    if re.search(r"(?<!\\)(?:\\\\)*\$$", text):
        text = text[:-1]
    alternatives = [_alternative(tokens) for tokens in _alternatives(written, text)]
    for each in alternatives:
        try:
            _compiled(each.text)
        except (re.error, OverflowError, RecursionError):
            raise _refusal(written, written) from None
    return alternatives


def pattern_text(expressions: Sequence[Expression], namespaces: Sequence[Expression] = ()) -> str:
    """The pattern for tables that one of these matches, in namespaces that one of those matches; none: any."""
    whole = f"/{'|'.join(each.text for each in expressions)}/"
    return f"{whole} in /{'|'.join(each.text for each in namespaces)}/" if namespaces else whole


@dataclass(frozen=True)
class TablePattern:
    """A pattern, ready to be matched."""

    whole: re.Pattern[str] | None
    """For `namespace.name`; None where any will do."""
    namespace: re.Pattern[str] | None = None
    name: re.Pattern[str] | None = None
    may_be_quoted: bool = False
    """A table's text form may match in place of its names: a shell may have taken the quotes, or not."""

    @classmethod
    def of(cls, text: str) -> TablePattern:
        return _pattern(text)

    def matches(self, namespace: str, name: str, text: str) -> bool:
        """`text` is the table's text form, in which a part with a dot has quotes."""
        if self.name is not None:
            return self.name.match(name) is not None
        if self.namespace is not None and not self.namespace.fullmatch(namespace):
            return False
        if self.whole is None or self.whole.fullmatch(f"{namespace}.{name}"):
            return True
        return self.may_be_quoted and self.whole.fullmatch(text) is not None


@lru_cache(1 << 10)
def _pattern(text: str) -> TablePattern:
    expression = _TEXT.fullmatch(text)
    if expression is not None:
        whole, namespace = expression.groups()
        for each in filter(None, (whole, namespace)):
            parse_expression(each)
        return TablePattern(_compiled(whole) if whole else None, _compiled(namespace) if namespace else None)
    glob_expression = re.compile(translate(text))
    if "." not in text:
        return TablePattern(None, name=glob_expression)
    return TablePattern(glob_expression, may_be_quoted=True)


def _compiled(text: str) -> re.Pattern[str]:
    """In Java's `matches` with `CASE_INSENSITIVE`, letters beyond ASCII mind their case."""
    return re.compile(_TOKEN.sub(_in_python, text), re.IGNORECASE | re.ASCII)


def _in_python(token: re.Match[str]) -> str:
    return _ANY + (token["times"] or "") if token["any"] else token[0]


def _alternatives(written: str, text: str) -> Iterator[list[re.Match[str]]]:
    tokens: list[re.Match[str]] = []
    at, effort = 0, _Effort(written)
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _refusal(written, text[at:])
        at = token.end()
        effort.take(token)
        if token["or"] and not effort.depth:
            yield tokens
            tokens = []
        else:
            tokens.append(token)
    yield tokens


class _Effort:
    """How long an expression may take to match: every choice of how often something comes multiplies with the others
    on its way through the groups. Refuses what could keep a server busy."""

    def __init__(self, written: str) -> None:
        self._written = written
        self._ways = [(0, 0)]
        """Of each open group: the choices on the way through this alternative, and the most of those before it."""

    @property
    def depth(self) -> int:
        return len(self._ways) - 1

    def take(self, token: re.Match[str]) -> None:
        now, most = self._ways[-1]
        if token["open"]:
            self._ways.append((0, 0))
        elif token["or"]:
            self._ways[-1] = (0, max(now, most))
        elif token["close"] and self.depth:
            del self._ways[-1]
            self._add(max(now, most) + token["close"].endswith("?"))
        elif token["times"] and ("," in token["times"] or token["times"][0] != "{"):
            self._add(OPTIONAL if token["times"][0] == "?" else REPEATED)
        if self.depth > GROUPS_MAX:
            raise ExpressionError(f"'{self._shown}' has groups nested deeper than {GROUPS_MAX}", "use fewer of them")

    def _add(self, choices: int) -> None:
        now, most = self._ways[-1]
        self._ways[-1] = (now + choices, most)
        if now + choices > CHOICES_MAX:
            raise ExpressionError(
                f"'{self._shown}' would take too long to match: it has more than {CHOICES_MAX // REPEATED} "
                "repetitions, such as .*, one after another",
                "write several expressions with fewer of them, separated by commas",
            )

    @property
    def _shown(self) -> str:
        return self._written if len(self._written) <= 60 else f"{self._written[:60]}…"


def _alternative(tokens: Sequence[re.Match[str]]) -> Expression:
    text = _SLASH.sub(lambda found: found[1] or r"\/", "".join(token[0] for token in tokens))
    wild = [token for token in tokens if token["any"] and not token["times"]]
    letters = [(token["literal"] or ".")[-1] for token in tokens]
    is_literal = all(token["literal"] and not token["times"] for token in tokens if token not in wild)
    # Every table has a dot between its names. Debezium's own examples leave its backslash out.
    stands_for_dot = len(wild) == 1 and not any(token["literal"] == r"\." for token in tokens)
    # Nothing at all would mean any table.
    return Expression(text or "()", "".join(letters) if is_literal and (not wild or stands_for_dot) else None)


def _refusal(written: str, rest: str) -> ExpressionError:
    return ExpressionError(
        f"'{written}' cannot be told exactly, because of '{rest[:10]}'",
        r"write names, public\.orders, with .* and alternatives, public\.(orders|items_.*)",
    )
