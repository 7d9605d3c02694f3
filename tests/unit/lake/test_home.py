"""What a lake knows of its source and its tables, and what it refuses."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from tests.doors.memory_bucket import MemoryBucket

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome, SourceRecord, home_of
from tailrace.lake.records.choices import Choice
from tailrace.model.cut import PublishedCut
from tailrace.model.lake_address import BucketLake
from tailrace.model.position import SourcePosition
from tailrace.model.rows.text_key import TextKey
from tailrace.model.signal import Signal
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

SHOP = {"source": "postgres", "system_identifier": "1", "database": "shop"}


def test_a_lake_keeps_its_claim_and_refuses_another_source(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    record = SourceRecord(SHOP, {"slot": "s", "owns_slot": True}, "delta")
    home.store_source(record)
    assert LakeHome.create(tmp_path / "lake").source() == record
    home.require_identity(SHOP)
    with pytest.raises(DefiniteError, match="is a copy of database shop, not of bank"):
        home.require_identity(SHOP | {"database": "bank"})
    with pytest.raises(DefiniteError, match="of another server"):
        home.require_identity(SHOP | {"system_identifier": "2"})


def test_what_a_reader_needs_lies_in_the_lake_and_the_rest_in_its_home(tmp_path: Path) -> None:
    lake, bucket = BucketLake("s3://bucket/shop", home=tmp_path / "home"), MemoryBucket(str(tmp_path), tmp_path)
    assert LakeHome.is_new(lake, bucket)
    home = LakeHome.create(lake, bucket)
    record = SourceRecord(SHOP, {"slot": "s"}, "delta")
    home.store_source(record)
    home.tables.store({TableId("a", "t"): TableRecord(TableState.LIVE)})
    home.cuts.append(PublishedCut(1, SourcePosition(7), {}))
    with home.locked():
        home.runs.vouched.store(7)
        home.choices.add(Choice("a.*", True))
        home.signals.requests.ask_signal(Signal("a", "log"))
    assert not LakeHome.is_new(lake, bucket)
    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700
    names = {path.name for path in home.folder.iterdir()}
    assert names == {"lake.json", "lock", "vouched", "choices.json", "requests"}
    there = LakeHome.find(replace(lake, home=tmp_path / "none"), bucket)
    assert there.source() == record
    assert list(there.tables.load()) == [TableId("a", "t")]
    assert [cut.seq for cut in there.cuts.all()] == [1]
    assert (there.holder(), there.runs.vouched.load(), list(there.signals.requests.signals())) == (None, 0, [])
    assert not (tmp_path / "none").exists()


def test_a_place_that_has_something_else_does_not_become_a_lake(tmp_path: Path) -> None:
    bucket = MemoryBucket(str(tmp_path), tmp_path)
    bucket.put("notes.txt", b"mine")
    with pytest.raises(DefiniteError, match="is not empty and not a Tailrace lake"):
        LakeHome.is_new(BucketLake("s3://bucket/shop"), bucket)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / ".notes").touch()
    with pytest.raises(DefiniteError, match="is not empty and not a Tailrace lake"):
        LakeHome.create(tmp_path / "folder")


def test_a_home_belongs_to_one_lake_and_does_not_outlive_it(tmp_path: Path) -> None:
    lake, bucket = BucketLake("s3://bucket/shop", home=tmp_path / "home"), MemoryBucket(str(tmp_path), tmp_path)
    home = LakeHome.create(lake, bucket)
    assert not home.is_here
    with home.locked():
        assert LakeHome(lake, bucket).is_here
    assert LakeHome.is_new(lake, bucket), "it died before it had begun"
    home.store_source(SourceRecord(SHOP, {}, "delta"))
    home.log.mkdir()
    assert not LakeHome.is_new(lake, bucket)
    other = replace(lake, address="s3://bucket/other")
    for refused in (LakeHome.create, LakeHome.is_new, LakeHome.find):
        with pytest.raises(DefiniteError, match="is the home of another lake, s3://bucket/shop"):
            refused(other, MemoryBucket(f"{tmp_path}/other", tmp_path))
        with pytest.raises(DefiniteError, match="is the home of another lake"):
            refused(lake, ElsewhereBucket(str(tmp_path), tmp_path))
    bucket.delete(["_tailrace/source.json"])
    with pytest.raises(DefiniteError, match="has the log of one that was there"):
        LakeHome.is_new(lake, bucket)


def test_of_two_machines_that_begin_a_lake_at_once_one_does(tmp_path: Path) -> None:
    bucket = MemoryBucket(str(tmp_path), tmp_path)
    mine, theirs = (
        LakeHome.create(BucketLake("s3://bucket/shop", home=tmp_path / who), bucket) for who in ("mine", "theirs")
    )
    record = SourceRecord(SHOP, {"slot": "mine"}, "delta")
    bucket.lose_answers(1)
    mine.begin(record)
    with pytest.raises(DefiniteError, match="another tailrace has just begun s3://bucket/shop"):
        theirs.begin(replace(record, claim={"slot": "theirs"}))
    assert theirs.source() == record


class ElsewhereBucket(MemoryBucket):
    """Of the same name, in another store."""

    @property
    def access(self) -> dict[str, str]:
        return {"endpoint": "http://127.0.0.1:1"}


def test_a_bucket_has_its_home_below_the_users_state_unless_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shop, other = home_of(BucketLake("s3://bucket/shop")), home_of(BucketLake("s3://other/shop"))
    assert shop.parent == other.parent == tmp_path / "state" / "tailrace" / "lakes"
    assert shop.name.startswith("shop-")
    assert shop != other
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", ignored)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert home_of(BucketLake("s3://bucket/shop")) == (
            tmp_path / ".local" / "state" / "tailrace" / "lakes" / shop.name
        )
    assert home_of(BucketLake("s3://bucket/shop", home=tmp_path / "mine")) == tmp_path / "mine"
    assert home_of(tmp_path / "lake") == tmp_path / "lake" / "_tailrace"


def test_two_connectors_cannot_have_the_same_lake(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    assert home.holder() is None
    with home.locked():
        assert home.holder() is not None
        with pytest.raises(DefiniteError, match="in use by another tailrace"), home.locked():
            pass
    with home.locked():
        pass
    assert home.holder() is None


def test_different_tables_have_different_folders_whatever_their_names(tmp_path: Path) -> None:
    home = LakeHome(tmp_path)
    names = ["orders", "Orders", "_orders", ".orders", "or/ders", "or~2f~ders", "été", "a b", ".."]
    paths = {
        Path(home.place_of(TableId(namespace, name)).address) for namespace in ("public", "_tailrace") for name in names
    }
    assert len(paths) == 2 * len(names)
    assert all(path.parent.parent == home.lake and not path.name.startswith((".", "_")) for path in paths)


def test_the_states_of_tables_survive_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    assert home.tables.load() == {}
    records = {
        TableId("public", "a.b"): TableRecord(TableState.LIVE, copy=1, relation=7),
        TableId("é", "x"): TableRecord(TableState.ERRORED, "why", "hint", 2, 8, True),
        TableId("public", "k"): TableRecord(TableState.LIVE, text_key=TextKey(7, (2, "day"), "a value")),
    }
    home.tables.store(records)
    assert LakeHome(home.lake).tables.load() == records
    assert stat.S_IMODE((home.lake / "_tailrace" / "tables.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "[{}]", '{"a": 1}', '[{"namespace": "a", "name": "b", "state": "happy"}]'])
def test_a_damaged_file_of_states_is_an_error_that_names_it(tmp_path: Path, content: str) -> None:
    home = LakeHome.create(tmp_path / "lake")
    (home.lake / "_tailrace" / "tables.json").write_text(content)
    with pytest.raises(DefiniteError, match=r"tables\.json is damaged"):
        home.tables.load()


def test_a_request_is_taken_up_once_and_one_that_makes_no_sense_is_put_aside(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    assert list(home.signals.requests.signals()) == []
    home.signals.requests.ask_signal(Signal("a", "log"))
    (home.lake / "_tailrace" / "requests" / "bad.json").write_text("{")
    ((signal, path),) = home.signals.requests.signals()
    assert signal == Signal("a", "log")
    path.unlink()
    assert list(home.signals.requests.signals()) == []
    assert (home.lake / "_tailrace" / "requests" / "bad.refused").exists()


def test_a_table_is_found_by_its_full_name_or_by_a_short_one_that_only_it_has(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    live = TableRecord(TableState.LIVE)
    home.tables.store({TableId("a", "t"): live, TableId("b", "t"): live, TableId("b", "u"): live})
    assert home.table_named("b.t") == TableId("b", "t")
    assert home.table_named("u") == TableId("b", "u")
    with pytest.raises(DefiniteError, match="several tables"):
        home.table_named("t")
    with pytest.raises(DefiniteError, match="no table x"):
        home.table_named("x")


def test_a_table_with_a_dot_in_its_name_is_never_taken_for_another(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    live, odd = TableRecord(TableState.LIVE), TableId("audit", "public.orders")
    home.tables.store({odd: live})
    assert home.table_named('audit."public.orders"') == odd
    assert home.table_named("audit.public.orders") == odd, "a shell takes the quotes"
    with pytest.raises(DefiniteError, match=r"no table public\.orders"):
        home.table_named("public.orders")
    home.tables.store({odd: live, TableId("audit.public", "orders"): live})
    assert home.table_named('"audit.public".orders') == TableId("audit.public", "orders")
    with pytest.raises(DefiniteError, match=r"several tables are called audit\.public\.orders"):
        home.table_named("audit.public.orders")
