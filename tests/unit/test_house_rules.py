"""The house rules that a machine can check. A rule that hurts the reader is changed here, not worked around."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tailrace"

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60

FORBIDDEN_MODULES = {"utils", "util", "helpers", "helper", "common", "base", "core", "misc"}
FORBIDDEN_CLASSES = re.compile(r"^Abstract|(Manager|Handler|Processor|Impl|Helper|Utils)$")
FORBIDDEN_WORDS = re.compile(r"\b(robust|comprehensive|seamless|blazing|powerful|cutting-edge|world-class)", re.I)
OLD_WORDS = re.compile(r"\b(anew|afresh|somebody|nobody|anybody|everybody|(?:goes|going|went) on)\b", re.I)
PROSE_COLUMNS_MAX = 120
MACHINE_PATH = re.compile(r"(?<![\w.:/])/(?:home|root|work|Users|tmp)/[\w.-]+")

LOCAL_FILES = re.compile(
    r"^open$|\.(read_(?:text|bytes)|write_(?:text|bytes)|unlink|rename|mkdir|rmdir|iterdir|r?glob|stat|exists|touch)$"
)
LOCAL_MODULES = re.compile(r"os\b|shutil\b|tempfile\b|tailrace\.storage\.(?!door)")

# The one place where tests wait for time to pass.
WAITING_FILE = ROOT / "tests" / "postgres.py"


def _python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _sql_files() -> list[Path]:
    return sorted(path for folder in ("src", "demo") for path in (ROOT / folder).rglob("*.sql"))


def _text_files() -> Iterator[Path]:
    """Everything that is ours to read, except this file, which names what it forbids."""
    generated = re.compile(r"^(\.git|\.venv.*|\.demo|\.hypothesis|build|__pycache__|.*_cache|.*\.egg-info)$")
    suffixes = {".py", ".md", ".sql", ".toml", ".sh", ".lock", ""}
    exceptions = (Path(__file__).resolve(), ROOT / "LICENSE")
    for path in sorted(ROOT.rglob("*")):
        is_ours = not any(map(generated.match, path.relative_to(ROOT).parts)) and path not in exceptions
        if is_ours and path.suffix in suffixes and path.is_file():
            yield path


ALL = _python_files("src", "demo", "tests", "benchmarks")
OURS = _python_files("src", "demo", "benchmarks")
TESTS = _python_files("tests")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _walked(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(_read(path))))


Node = TypeVar("Node", bound=ast.AST)


def _nodes(paths: Iterable[Path], *kinds: type[Node]) -> Iterator[tuple[str, Node]]:
    """Every syntax node of these kinds, with `file:line` for the reader of a failure."""
    for path in paths:
        for node in _walked(path):
            if isinstance(node, kinds):
                yield f"{_name(path)}:{getattr(node, 'lineno', 1)}", node


def test_a_module_fits_in_a_head() -> None:
    lines = {_name(path): len(_read(path).splitlines()) for path in ALL}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES_MAX} == {}


def test_a_function_fits_on_a_screen() -> None:
    too_long = [
        f"{place} {function.name}"
        for place, function in _nodes(ALL, ast.FunctionDef, ast.AsyncFunctionDef)
        if (function.end_lineno or function.lineno) - function.lineno >= FUNCTION_LINES_MAX
    ]
    assert too_long == []


def test_every_module_says_what_it_promises() -> None:
    silent = [_name(path) for path in ALL if _read(path).strip() and not ast.get_docstring(ast.parse(_read(path)))]
    assert silent == []


def test_names_are_nouns_of_the_domain() -> None:
    modules = [_name(path) for path in ALL if path.stem.strip("_") in FORBIDDEN_MODULES]
    classes = [
        f"{place} {node.name}" for place, node in _nodes(ALL, ast.ClassDef) if FORBIDDEN_CLASSES.search(node.name)
    ]
    assert modules + classes == []


def test_an_init_file_holds_no_code() -> None:
    """Except the package's own, which names what is public and loads it when it is asked for."""
    code = [
        f"{_name(path)}:{node.lineno}"
        for path in OURS
        if path.name == "__init__.py" and path != PACKAGE / "__init__.py"
        for node in ast.parse(_read(path)).body
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    assert code == []


def test_sql_is_lowercase() -> None:
    shouted = [
        f"{_name(path)}: {word}"
        for path in _sql_files()
        for word in re.findall(r"\b[A-Z]{2,}\b", _bare_sql(_read(path)))
    ]
    assert shouted == []


def test_every_query_has_a_name_and_a_purpose() -> None:
    """`shop.sql` is a script, run as a whole."""
    unnamed = []
    for path in (path for path in _sql_files() if path.name != "shop.sql"):
        headings = re.findall(r"^-- \w+: \S.*$", _read(path), flags=re.MULTILINE)
        statements = [part for part in _bare_sql(_read(path)).split(";") if part.strip()]
        if len(headings) != len(statements):
            unnamed.append(f"{_name(path)}: {len(statements)} queries, {len(headings)} names")
    assert unnamed == []


def _bare_sql(text: str) -> str:
    return re.sub(r"--.*|'(?:[^']|'')*'", "", text)


def test_every_room_is_in_the_architecture() -> None:
    architecture = _read(ROOT / "ARCHITECTURE.md")
    rooms = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
    assert [room for room in rooms if f"`{room}/`" not in architecture] == []


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    assert [f"{_name(path)}: {found}" for path in _text_files() for found in MACHINE_PATH.findall(_read(path))] == []


def test_nothing_is_advertised() -> None:
    assert [f"{_name(path)}: {found}" for path in _text_files() for found in FORBIDDEN_WORDS.findall(_read(path))] == []


def test_words_are_those_of_a_colleague() -> None:
    """Tests are left out: one of them becomes the system's user of that name."""
    ours = [path for path in _text_files() if ROOT / "tests" not in path.parents]
    assert [f"{_name(path)}: {found}" for path in ours for found in OLD_WORDS.findall(_read(path))] == []


def test_prose_in_documents_is_wrapped() -> None:
    """Tables and code are as wide as they need to be."""
    wide = []
    for path in (path for path in _text_files() if path.suffix == ".md"):
        prose = re.sub(r"^```.*?^```", lambda block: "\n" * block.group(0).count("\n"), _read(path), flags=re.M | re.S)
        for number, line in enumerate(prose.splitlines(), 1):
            if len(line) > PROSE_COLUMNS_MAX and not line.startswith("|"):
                wide.append(f"{_name(path)}:{number}")
    assert wide == []


def test_tests_wait_for_events_and_never_sleep() -> None:
    calls = _nodes((path for path in TESTS if path != WAITING_FILE), ast.Call)
    assert [place for place, call in calls if ast.unparse(call.func).split(".")[-1] == "sleep"] == []


def test_tests_meet_the_real_thing() -> None:
    mocked = re.compile(r"\b(mock|pytest_mock)\b")
    imports = _nodes(TESTS, ast.Import, ast.ImportFrom)
    assert [place for place, node in imports if mocked.search(ast.unparse(node))] == []


def test_the_name_of_a_test_is_a_sentence() -> None:
    functions = _nodes(TESTS, ast.FunctionDef)
    assert [place for place, each in functions if each.name.startswith("test_") and each.name.count("_") < 3] == []


def test_every_error_that_is_raised_has_a_kind() -> None:
    """A bare `Exception` is neither transient nor definite."""
    calls = _nodes(_python_files("src"), ast.Call)
    assert [place for place, call in calls if ast.unparse(call.func) in ("Exception", "BaseException")] == []


def test_a_private_module_is_imported_by_its_own_room_only() -> None:
    """`tailrace.lake.delta._open_versions` is known inside `tailrace.lake.delta` only."""
    strangers = [
        f"{place} {module}"
        for path in _python_files("src", "demo")
        for place, module in _imported_modules(path)
        if (room := _room_of_private(module)) is not None and not _is_inside(path, room)
    ]
    assert strangers == []


def _imported_modules(path: Path) -> Iterator[tuple[str, str]]:
    for place, node in _nodes([path], ast.Import, ast.ImportFrom):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place}: relative import"
            yield from ((place, f"{node.module}.{name.name}") for name in node.names)
        else:
            yield from ((place, name.name) for name in node.names)


def _room_of_private(module: str) -> str | None:
    """The package around a private module of ours; None for what is not one."""
    found = re.match(r"(tailrace(?:\.[a-z][a-z_]*)*)\._[a-z]", module)
    return found.group(1) if found else None


def _is_inside(path: Path, room: str) -> bool:
    return path.is_relative_to(ROOT / "src" / room.replace(".", "/"))


def test_a_lakes_files_are_reached_through_the_door_to_storage() -> None:
    """`tailrace.storage.door.Storage`: a lake may lie where there are neither folders nor files. Local are the home of
    its connector (`home.py`, `records/`), what can be made again (`key_index.py`), and DuckDB itself (`_scan.py`)."""
    lake = PACKAGE / "lake"
    local = {lake / "home.py", lake / "key_index.py", lake / "delta" / "_scan.py"}
    paths = [path for path in lake.rglob("*.py") if path not in local and path.parent.name != "records"]
    calls = [
        f"{place} {text}"
        for place, call in _nodes(paths, ast.Call)
        if LOCAL_FILES.search(text := ast.unparse(call.func))
    ]
    imports = [
        f"{place} {module}"
        for path in paths
        for place, module in _imported_modules(path)
        if LOCAL_MODULES.match(module)
    ]
    assert calls + imports == []


def test_no_two_files_of_a_tier_have_one_name() -> None:
    """They are imported by that name alone, and the second one would be taken for the first."""
    tiers = [path.name for path in sorted((ROOT / "tests").iterdir()) if path.is_dir()]
    for tier in tiers:
        names = [path.name for path in _python_files(f"tests/{tier}") if path.name.startswith("test_")]
        assert sorted(name for name in set(names) if names.count(name) > 1) == [], tier
