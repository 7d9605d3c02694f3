"""What is prepared is used only where it is whole and belongs to what is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.engine.spark import prepared

OPTIONS = {
    "spark.jars.packages": "group:jars:1",
    "spark.jars.excludes": "group:*",
    "spark.driver.extraJavaOptions": "-Xss4m",
    "spark.ui.enabled": "false",
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def _prepare(cache: Path) -> tuple[Path, Path]:
    jar, archive = cache / "a.jar", cache / "archive"
    jar.touch()
    archive.touch()
    prepared.store("group:jars:1", prepared.PreparedStart((str(jar),), archive))
    return jar, archive


def test_nothing_prepared_changes_nothing(cache: Path) -> None:
    assert prepared.applied(OPTIONS) == OPTIONS


def test_jars_come_from_the_disk_and_classes_from_the_archive(cache: Path) -> None:
    jar, archive = _prepare(cache)
    assert prepared.applied(OPTIONS) == {
        "spark.driver.extraClassPath": str(jar),
        "spark.driver.extraJavaOptions": f'"-XX:SharedArchiveFile={archive}" -XX:+VerifySharedSpaces -Xss4m',
        "spark.ui.enabled": "false",
    }


def test_what_is_incomplete_or_belongs_to_other_packages_is_left_aside(cache: Path) -> None:
    jar, archive = _prepare(cache)
    other = OPTIONS | {"spark.jars.packages": "group:jars:2"}
    assert prepared.applied(other) == other
    own = OPTIONS | {"spark.driver.extraClassPath": "mine.jar"}
    assert prepared.applied(own) == own
    jar.unlink()
    assert prepared.applied(OPTIONS) == OPTIONS
    jar.touch()
    archive.write_bytes(b"longer")
    assert prepared.applied(OPTIONS) == OPTIONS
    archive.unlink()
    assert prepared.applied(OPTIONS) == OPTIONS


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"jars": 3, "archive": null}', b"\xff"])
def test_a_damaged_record_is_no_record(cache: Path, damaged: bytes) -> None:
    _prepare(cache)
    next((cache / "tailrace").glob("*.json")).write_bytes(damaged)
    assert prepared.applied(OPTIONS) == OPTIONS
