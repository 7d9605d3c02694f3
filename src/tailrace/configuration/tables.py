"""Which tables a configuration names: Debezium's lists of tables and of schemas, as patterns of ours.

The patterns match exactly the tables that Debezium's expressions match, or the expression is refused. An expression
that is a name comes first as that name, case included: it is what messages show, and it must name a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.model.table_pattern import Expression, ExpressionError, exact_pattern, parse_expression, pattern_text


def matched(expression: str) -> list[str]:
    """A pattern for all tables that an expression means. It may match none."""
    return [pattern_text([each]) for each in _of_tables(expression)]


def chosen(expression: str, schemas: Sequence[Expression] = ()) -> list[str]:
    """Patterns for tables, each of which must be there; only for tables in `schemas`, where some are given."""
    patterns = []
    for each in _of_tables(expression):
        if each.literal is not None and schemas and not each.is_within(schemas):
            continue
        if each.literal is not None and each.literal.count(".") == 1:
            patterns.append(exact_pattern(each.literal))
        patterns.append(pattern_text([each], schemas))
    return patterns


def of_schemas(schemas: Sequence[Expression]) -> list[str]:
    """A pattern for all tables of these schemas."""
    return [pattern_text([], schemas)] if schemas else []


def _of_tables(expression: str) -> list[Expression]:
    alternatives = parse_expression(expression)
    for each in alternatives:
        if each.literal is not None and "." not in each.literal:
            raise ExpressionError(f"'{expression}' names no table", r"write the schema too: public\.orders")
    return alternatives
