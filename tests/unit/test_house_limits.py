"""House rules that the house does not keep everywhere yet.

`house_debts.toml` names, for each rule, what breaks it today. The list may only shrink: what is not on it must keep the
rule, and what keeps the rule must not be on it. Where something is better as it is, it stays there under `kept`, with
the reason.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.unit.test_house_rules import PACKAGE, TESTS, _imported_modules, _name, _nodes, _read, _walked

DEBTS = Path(__file__).with_name("house_debts.toml")
SRC = sorted(PACKAGE.rglob("*.py"))

FOLDER_MODULES_MAX = 14
CLASS_LINES_MAX = 200
CLASS_ATTRIBUTES_MAX = 12
ALONE_LINES_MIN = 40
"""A module that is shorter has two importers, or is a door, or data."""


def folders_with_many_modules() -> Iterator[str]:
    modules = Counter(path.parent for path in SRC if path.name != "__init__.py")
    yield from (_name(folder) for folder, count in modules.items() if count > FOLDER_MODULES_MAX)


def long_classes() -> Iterator[str]:
    for path, node in _classes():
        if (node.end_lineno or node.lineno) - node.lineno >= CLASS_LINES_MAX:
            yield f"{_name(path)} {node.name}"


def classes_with_many_attributes() -> Iterator[str]:
    for path, node in _classes():
        if len(_declared(node) | _assigned(node.body)) > CLASS_ATTRIBUTES_MAX:
            yield f"{_name(path)} {node.name}"


def attributes_set_after_init() -> Iterator[str]:
    for path, node in _classes():
        first = [each for each in node.body if getattr(each, "name", "") in ("__init__", "__post_init__")]
        late = _assigned(node.body) - _assigned(first) - _declared(node)
        yield from (f"{_name(path)} {node.name}.{attribute}" for attribute in late)


def short_modules_with_one_importer() -> Iterator[str]:
    importers: dict[str, set[Path]] = defaultdict(set)
    for path in SRC:
        for _, module in _imported_modules(path):
            # `from a.b import c` imports the module a.b, or a.b.c.
            importers[module].add(path)
            importers[module.rpartition(".")[0]].add(path)
    for path in SRC:
        is_short = path.name != "__init__.py" and len(_read(path).splitlines()) < ALONE_LINES_MIN
        if is_short and len(importers[_module(path)]) == 1 and not _is_door_or_data(path):
            yield _name(path)


def classes_with_the_same_name() -> Iterator[str]:
    yield from (name for name, count in Counter(node.name for _, node in _classes()).items() if count > 1)


def constants_that_tests_patch() -> Iterator[str]:
    for path in TESTS:
        for _, call in _nodes([path], ast.Call):
            if ast.unparse(call.func).endswith("setattr"):
                names = [each.value for each in call.args[:2] if isinstance(each, ast.Constant)]
                yield from (f"{_name(path)} {name}" for name in names if re.search(r"(^|\.)_?[A-Z][A-Z_]+$", str(name)))


def private_modules_that_tests_import() -> Iterator[str]:
    for path in TESTS:
        for _, name in _imported_modules(path):
            found = re.match(r"tailrace(?:\.[a-z]\w*)*\._[a-z]\w*", name)
            # `from tailrace.room.module import _name` is a name of a module, not a module.
            if found and (PACKAGE.parent / found.group().replace(".", "/")).with_suffix(".py").exists():
                yield f"{_name(path)} {found.group()}"


RULES = {
    rule.__name__: rule
    for rule in (
        folders_with_many_modules,
        long_classes,
        classes_with_many_attributes,
        attributes_set_after_init,
        short_modules_with_one_importer,
        classes_with_the_same_name,
        constants_that_tests_patch,
        private_modules_that_tests_import,
    )
}


@pytest.mark.parametrize("rule", RULES)
def test_nothing_breaks_a_rule_but_what_is_listed_and_that_list_shrinks(rule: str) -> None:
    found, listed = set(RULES[rule]()), _listed(rule)
    assert sorted(found - listed) == [], f"break the rule: {rule}"
    assert sorted(listed - found) == [], f"keep the rule now: delete them from {DEBTS.name}"


def _listed(rule: str) -> set[str]:
    debts = tomllib.loads(_read(DEBTS))
    return {*debts.get("owed", {}).get(rule, []), *debts.get("kept", {}).get(rule, {})}


def test_every_list_belongs_to_a_rule_and_what_is_kept_has_a_reason() -> None:
    debts = tomllib.loads(_read(DEBTS))
    assert {*debts["owed"], *debts["kept"]} <= set(RULES)
    assert all(reason.strip() for kept in debts["kept"].values() for reason in kept.values())


@cache
def _classes() -> list[tuple[Path, ast.ClassDef]]:
    return [(path, node) for path in SRC for node in _walked(path) if isinstance(node, ast.ClassDef)]


def _declared(node: ast.ClassDef) -> set[str]:
    """Fields of a dataclass or a protocol, and what is set for all instances. An enum has members instead."""
    if any(ast.unparse(base).endswith("Enum") for base in node.bases):
        return set()
    targets = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    targets += [target for each in node.body if isinstance(each, ast.Assign) for target in each.targets]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _assigned(body: Iterable[ast.AST]) -> set[str]:
    """The attributes of `self` that are assigned somewhere in there."""
    return {
        node.attr
        for each in body
        for node in ast.walk(each)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def _is_door_or_data(path: Path) -> bool:
    """Data is constants, records and kinds of error: no function, and no class that is given what it works with."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    is_data = not any(isinstance(each, functions) for each in ast.parse(_read(path)).body) and not any(
        isinstance(each, functions) and each.name == "__init__" for each in _walked(path)
    )
    return is_data or "door" in path.relative_to(PACKAGE).with_suffix("").parts
