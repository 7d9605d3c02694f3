"""What `tailrace serve` understands of an address."""

from __future__ import annotations

import pytest

from tailrace.cli.server.serve import parse_address
from tailrace.errors import DefiniteError


def test_an_address_is_a_host_and_a_port() -> None:
    assert parse_address("127.0.0.1:8083") == ("127.0.0.1", 8083)
    assert parse_address("[::1]:0") == ("::1", 0)
    assert parse_address("localhost:65535") == ("localhost", 65535)


@pytest.mark.parametrize("listen", ["8083", ":8083", "host", "host:", "host:x", "host:65536", "host:-1", "host:²"])
def test_anything_else_is_refused_with_an_example(listen: str) -> None:
    with pytest.raises(DefiniteError) as found:
        parse_address(listen)
    assert "127.0.0.1:8083" in (found.value.hint or "")
