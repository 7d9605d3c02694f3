"""A server that others may reach: TLS, a token, and nothing without it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.serving import serving

from tailrace.errors import DefiniteError
from tailrace.server.serving import ServerSettings, serve


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_a_server_with_tls_and_a_token_answers_those_who_have_it(tmp_path: Path) -> None:
    cert, key, token = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "token"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run([*made.split(), "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    token.write_text("0123456789abcdef0123456789abcdef\n")
    with serving(tmp_path / "home", token_file=token, tls_cert=cert, tls_key=key) as server:
        assert server.address.startswith("https://")
        assert server.ask("GET", "/connectors") == []
        with httpx.Client(base_url=server.address, verify=False) as stranger:
            for path in ("/", "/connectors", "/metrics", "/openapi.json", "/health/ready", "/events"):
                answer = stranger.get(path)
                assert (answer.status_code, answer.json()["error_code"]) == (401, 401)
                assert answer.headers["www-authenticate"] == "Bearer"
            assert stranger.get("/health/live").status_code == 200
            assert stranger.get("/", auth=("any", token.read_text().strip())).status_code == 200
        crossed = server.http.get("/connectors", headers={"origin": "https://elsewhere.example"})
        assert crossed.status_code == 403
        assert not [name for name in crossed.headers if name.startswith("access-control")]
        large = server.http.post("/connectors", content=b" " * (2 << 20), headers={"content-type": "application/json"})
        assert large.status_code == 413


def test_what_cannot_be_served_safely_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "broken.pem").write_text("no certificate")
    broken = tmp_path / "broken.pem"
    for wrong, message in [
        (ServerSettings(tmp_path / "home", "0.0.0.0", 0), "there is no token"),
        (ServerSettings(tmp_path / "home", port=0, tls_cert=broken), "needs a certificate and its key"),
        (ServerSettings(tmp_path / "home", port=0, tls_cert=broken, tls_key=broken), "TLS does not work"),
        (ServerSettings(tmp_path / "broken.pem", port=0), "cannot use"),
    ]:
        with pytest.raises(DefiniteError, match=message):
            serve(wrong, lambda _: None)
