"""What a lake knows of its source, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.connector.home import LakeHome
from tailrace.errors import DefiniteError
from tailrace.model.table import TableId

SHOP = {"source": "postgres", "system_identifier": "1", "database": "shop"}


def test_a_claimed_lake_keeps_its_slot_and_refuses_another_source(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    record = home.claim(SHOP, None, None)
    assert record.slot.startswith("tailrace_shop_")
    assert record.owns_slot
    assert LakeHome.create(tmp_path / "lake").claim(SHOP, None, None) == record
    with pytest.raises(DefiniteError, match="is a copy of database shop, not of bank"):
        home.claim(SHOP | {"database": "bank"}, None, None)
    with pytest.raises(DefiniteError, match="of another server"):
        home.claim(SHOP | {"system_identifier": "2"}, None, None)
    with pytest.raises(DefiniteError, match="not mine"):
        home.claim(SHOP, "mine", None)


def test_two_connectors_cannot_have_the_same_lake(tmp_path: Path) -> None:
    home = LakeHome.create(tmp_path / "lake")
    with home.locked(), pytest.raises(DefiniteError, match="in use by another tailrace"), home.locked():
        pass
    with home.locked():
        pass


def test_different_tables_have_different_folders_whatever_their_names(tmp_path: Path) -> None:
    home = LakeHome(tmp_path)
    names = ["orders", "Orders", "_orders", ".orders", "or/ders", "or~2f~ders", "été", "a b", ".."]
    paths = {home.table_path(TableId(namespace, name)) for namespace in ("public", "_tailrace") for name in names}
    assert len(paths) == 2 * len(names)
    assert all(path.parent.parent == home.path and not path.name.startswith((".", "_")) for path in paths)
