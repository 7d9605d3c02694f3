"""What is wrong with a statement, and where: the one error of this language."""

from __future__ import annotations

from tailrace.errors import DefiniteError
from tailrace.server.sql.language.masking import masked
from tailrace.server.sql.language.statements import TextPlace

EXCERPT_COLUMNS_MAX = 100


class SqlError(DefiniteError):
    """A statement that cannot be understood, or that asks for what there is not. Nothing of it was done.

    `message` is one line that begins with line and column. `excerpt` is that line of the text and a caret under the
    place. Neither shows what could be a
    secret.
    """

    def __init__(
        self,
        place: TextPlace,
        problem: str,
        hint: str | None = None,
        *,
        expected: tuple[str, ...] = (),
        status: int = 400,
    ) -> None:
        super().__init__(f"line {place.line}, column {place.column}: {problem}", hint)
        self.place = place
        self.problem = problem
        self.expected = expected
        self.status = status
        """HTTP's, for those who speak it: 404 where there is no such source, 409 where something is taken."""
        self.excerpt = ""

    def in_text(self, text: str) -> SqlError:
        """The same, with the line of the text that it is about."""
        error = SqlError(self.place, self.problem, self.hint, expected=self.expected, status=self.status)
        error.excerpt = self.excerpt or _excerpt(text, self.place)
        return error


def _excerpt(text: str, place: TextPlace) -> str:
    """The line and a caret below. Of a long line, the part around the place."""
    lines = masked(text).split("\n")
    line = "".join(_printable(character) for character in lines[min(place.line, len(lines)) - 1])
    start = 0 if len(line) <= EXCERPT_COLUMNS_MAX else max(0, place.column - 1 - EXCERPT_COLUMNS_MAX * 2 // 3)
    part = line[start : start + EXCERPT_COLUMNS_MAX].rstrip()
    return f"{part}\n{' ' * (place.column - 1 - start)}^"


def _printable(character: str) -> str:
    """One column for each character, whatever it would do to a terminal."""
    if character in "\t\r":
        return " "
    return character if character.isprintable() else "�"
