"""`docs/configuration.md`, made from the properties: `python -m scripts.configuration_document` writes it."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from tailrace.configuration.properties import Property, Verdict, all_properties

PATH = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"

_INTRODUCTION = r"""# Configuration

A connector is configured with the property names of Debezium's connector for Postgres. A file that you have for
Debezium works here, or you are told which of its properties do not. [shop.yaml](examples/shop.yaml) is a complete
example:

```console
$ export SHOP_PASSWORD=secret
$ tailrace run --check shop.yaml    # read it, and show what becomes of each key
$ tailrace run --once shop.yaml     # run the connector; without --once it follows until Ctrl-C
```

A configuration is what Kafka Connect's is: keys and texts. A file is `.yaml`, `.json` or `.properties`. In YAML and
JSON, numbers and flags are taken as they are written, nesting becomes dots (`database: {port: 5432}` is
`database.port`), and a list is joined by commas. The body of a `POST /connectors`, `{"name": …, "config": {…}}`, works
too. A file that gives no `name` gives its own. Relative paths start where `tailrace` is started.

Each property has a verdict:

| verdict | what becomes of it |
|---|---|
| supported | it does what the table says |
| ignored | accepted, with a warning: it means nothing here, or we do it anyway |
| refused | the configuration is not accepted: what it asks for would change what is copied, and we do not do it |

A value that asks for what happens anyway is accepted without a word, whatever the verdict. A key that is in none of the
tables is refused, with the key that you may have meant. All problems are told at once. [Types](types.md) says what a
value of each type becomes.

## Secrets

| written | means |
|---|---|
| `${env:NAME}` | a variable of the environment |
| `${file:PATH}` | a whole file, without blanks at its ends |
| `${file:PATH:KEY}` | one key of a `.properties` file |
| `$${` | a `${` that is meant as it stands |

References may stand anywhere in a value, and are looked up at each start. A password is never shown: neither in
messages nor in logs, nor where a configuration is printed. There it is `********`, and a reference stays a reference.
So is every value whose key looks like one of a secret (`…password`, `…secret…`, `…token…`), every address with a
password in it, and the value of every key that we do not know.

## Expressions

`table.include.list` and the other lists of tables have Debezium's regular expressions. Each must match a whole
`schema.table`, upper and lower case alike. What Java could read in another way than we do is refused:

| expression | is |
|---|---|
| `public\.orders`, `public.orders` | that table |
| `public\..*`, `public\..+` | all tables of a schema |
| `.*\.orders` | the tables of that name |
| `public\.(orders\|items_.*)` | alternatives, also in the middle of a name |
| `public\.orders?` | with and without the last letter |
| `public\.orders_[0-9]{4}`, `public\.orders_\d+` | a year, or any number, after the name |
| `(ab)+`, `(?!x)`, `(?i)`, `\b`, `\p{L}`, `\Q…\E` and the like | refused |
| `.*a.*b.*c.*d.*`, more than four repetitions one after another | refused: it could take long to match |

An expression of `table.include.list` that matches no table is an error when the connector starts, with the table that
may have been meant: a misspelt one must not be missing silently. One that is a plain name must be written as the table
is, case included. With `schema.include.list` too, a table must be in both lists. An exclude list takes tables away from
what is included; Debezium refuses the two together.

"""


def documentation() -> str:
    """The whole document."""
    sections = [
        _section(group, list(properties))
        for group, properties in groupby(all_properties(), key=lambda each: each.group)
    ]
    return _INTRODUCTION + "\n".join(sections)


def _section(group: str, properties: list[Property]) -> str:
    rows = "".join(
        f"| `{each.name}` | {_verdict(each)} | {_code(each.default)} | {_cell(each.meaning)} |\n" for each in properties
    )
    return f"## {group}\n\n| property | verdict | default | meaning |\n|---|---|---|---|\n{rows}"


def _verdict(each: Property) -> str:
    harmless = ", ".join(f"`{value}`" for value in each.harmless)
    return f"{each.verdict}, except {harmless}" if each.verdict is Verdict.REFUSED and harmless else each.verdict


def _code(text: str | None) -> str:
    return "" if text is None else f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PATH.write_text(documentation(), encoding="utf-8")
