"""A file becomes flat texts, as they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.configuration.files import load, normalised
from tailrace.configuration.reading import read
from tailrace.errors import DefiniteError

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "shop.yaml"


def loaded(folder: Path, name: str, text: str) -> dict[str, str]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load(path)


def refusal(folder: Path, name: str, text: str) -> str:
    with pytest.raises(DefiniteError) as caught:
        loaded(folder, name, text)
    return caught.value.message.replace(f"{folder}/", "")


def test_what_json_has_becomes_kafka_connects_texts() -> None:
    raw = {
        "name": "shop",
        "database": {"port": 5432, "dbname": "shop", "ssl": {"deep": 1.5}},
        "tasks.max": 1,
        "read.only": True,
        "tombstones.on.delete": False,
        "table.include.list": ["a.b", "c.d", 1],
        "slot.name": None,
        "empty": "",
        "none": [],
    }
    assert normalised(raw) == {
        "name": "shop",
        "database.port": "5432",
        "database.dbname": "shop",
        "database.ssl.deep": "1.5",
        "tasks.max": "1",
        "read.only": "true",
        "tombstones.on.delete": "false",
        "table.include.list": "a.b,c.d,1",
        "empty": "",
        "none": "",
    }


def test_a_key_that_is_there_twice_is_refused() -> None:
    with pytest.raises(DefiniteError, match=r"database.port is there twice"):
        normalised({"database": {"port": 1}, "database.port": 2})
    assert normalised({"database": {"port": 1}, "database.port": "1"}) == {"database.port": "1"}
    with pytest.raises(DefiniteError, match=r"a.b is a list of more than texts"):
        normalised({"a": {"b": [{"c": 1}]}})


def test_yaml_keeps_what_is_written(tmp_path: Path) -> None:
    text = """
    name: other
    database:
      password: 0123
      port: 5_432
    read.only: on
    lake.retain: 12:30
    at: 2026-11-17
    slot.name: null
    publication.name: "null"
    list: [1e3, yes]
    """
    assert loaded(tmp_path, "shop.yaml", text) == {
        "name": "other",
        "database.password": "0123",
        "database.port": "5_432",
        "read.only": "on",
        "lake.retain": "12:30",
        "at": "2026-11-17",
        "publication.name": "null",
        "list": "1e3,yes",
    }


def test_json_keeps_what_is_written_and_may_be_what_is_sent_for_a_new_connector(tmp_path: Path) -> None:
    assert loaded(tmp_path, "shop.json", '{"a": 1.10, "b": true}') == {"name": "shop", "a": "1.10", "b": "true"}
    sent = '{"name": "orders", "config": {"a": 1, "b": {"c": "d"}}}'
    assert loaded(tmp_path, "shop.json", sent) == {"name": "orders", "a": "1", "b.c": "d"}


def test_a_properties_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    text = r"""
# comment
! another
name=orders
 a.b : c d
x\=y z
long=one,\
    two\\
path=C:\\x\tu\u00e4
k
"""
    assert loaded(tmp_path, "shop.properties", text) == {
        "name": "orders",
        "a.b": "c d",
        "x=y": "z",
        "long": "one,two\\",
        "path": "C:\\x\tuä",
        "k": "",
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("shop.yaml", "a: 1\nb: ]canary", "shop.yaml, line 2: that is not YAML"),
        ("shop.yaml", "a: 1\na: canary", "a is there twice"),
        ("shop.yaml", "- canary", "shop.yaml has no keys"),
        ("shop.yaml", "a: \x01canary", "shop.yaml is not YAML"),
        ("shop.yaml", "a: !!python/object:os.system canary", "shop.yaml, line 1: that is not YAML"),
        ("shop.json", '{"a":\n canary}', "shop.json, line 2: that is not JSON: expecting value"),
        ("shop.json", '{"a": 1, "a": "canary"}', "a is there twice"),
        ("shop.json", "[" * 100_000, "shop.json is nested too deeply"),
        ("shop.yaml", "[" * 600, "shop.yaml is nested too deeply"),
        ("shop.toml", "a = 1", "shop.toml is no configuration by its name"),
    ],
)
def test_a_file_that_is_none_is_refused_without_repeating_it(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    assert refusal(tmp_path, name, text) == message


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(DefiniteError, match="cannot be read: no such file or directory"):
        load(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"a: \xff")
    with pytest.raises(DefiniteError, match="it is not text in UTF-8"):
        load(tmp_path / "bytes.yaml")


def test_the_example_is_accepted_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "x")
    configuration = read(load(EXAMPLE))
    assert configuration.warnings == ()
    assert configuration.settings.lake == Path("shop-lake")
    assert configuration.settings.tables[:2] == ("public.customers", r"/public\.customers/")
