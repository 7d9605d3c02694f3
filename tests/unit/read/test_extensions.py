"""An extension of DuckDB's is loaded only where its makers signed it, and that is checked once."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

from tailrace.errors import DefiniteError
from tailrace.read import extensions
from tailrace.read.extensions import require_signed


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A process that has checked nothing yet, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(extensions, "_signed", set())
    return tmp_path / "cache" / "tailrace" / "signed"


def delta() -> Path:
    package = find_spec("duckdb_extension_delta")
    assert package is not None
    (folder,) = package.submodule_search_locations or ()
    return Path(folder, "extensions", f"v{duckdb.__version__}", "delta.duckdb_extension")


def test_a_signed_extension_is_found_signed_and_one_with_another_byte_is_not(tmp_path: Path, cache: Path) -> None:
    copy = tmp_path / "delta.duckdb_extension"
    shutil.copyfile(delta(), copy)
    require_signed(copy)
    assert len(list(cache.iterdir())) == 2
    with copy.open("r+b") as file:
        file.seek(1 << 20)
        byte = file.read(1)
        file.seek(1 << 20)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(DefiniteError, match="signature"):
        require_signed(copy)
    assert len(list(cache.iterdir())) == 2


def test_a_content_that_was_found_signed_is_not_checked_again_unless_others_could_say_so(
    tmp_path: Path, cache: Path
) -> None:
    """The file is none that DuckDB could load, so whatever is not believed fails."""
    file = tmp_path / "delta.duckdb_extension"
    file.write_bytes(b"no extension")
    with pytest.raises(DefiniteError):
        require_signed(file)
    cache.mkdir(0o700, parents=True)
    (cache / f"{duckdb.__version__}-{hashlib.sha256(b'no extension').hexdigest()}").touch()
    cache.chmod(0o777)
    with pytest.raises(DefiniteError):
        require_signed(file)
    cache.chmod(0o700)
    require_signed(file)
