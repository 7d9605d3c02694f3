"""The console's files: what is answered for a path, under which policy, and what the files may be."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest
from starlette.responses import Response

from tailrace.server.ui.pages import STATIC, Console

FILES = sorted(each for each in STATIC.rglob("*") if each.is_file())
SCRIPTS = [each for each in FILES if each.suffix == ".js"]
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'
"""No address: nothing is fetched from it."""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    """A console with a package that has come."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "small.mjs").write_text("export const one = 1;")
    (tmp_path / "packages.json").write_text(json.dumps([{"name": "small", "files": {"a": "small.mjs"}}]))
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text('<script type="importmap">{"imports": {}}</script>')
    (tmp_path / "secret.js").write_text("no")
    return Console(tmp_path / "static", tmp_path / "packages", tmp_path / "packages.json")


def body(answer: Response) -> str:
    return bytes(answer.body).decode()


def test_every_path_that_is_no_file_is_the_one_page(console: Console) -> None:
    for path in ("", "c/shop", "c/a%2Fb/tables", "new", "index.html"):
        answer = console.answer(path, None)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "importmap" in body(answer)


def test_the_page_asks_for_all_its_modules_at_once(console: Console) -> None:
    (console.static / "index.html").write_text('<head><script type="importmap">{"imports": {}}</script></head>')
    (console.static / "pages").mkdir()
    for name in ("app.js", "pages/some.js", "worker.js"):
        (console.static / name).write_text("/** Some. */")
    first = console.answer("", None)
    asked = re.findall('<link rel="modulepreload" href="(.*?)">', body(first))
    assert asked == ["/ui/packages/small.mjs", "/ui/static/app.js", "/ui/static/pages/some.js"]
    assert console.answer("", first.headers["etag"]).status_code == 304


def test_no_path_leads_out_of_the_folder(console: Console) -> None:
    for path in ("static/../secret.js", "static//etc/passwd", "packages/../secret.js", "static/none.js", "static/"):
        answer = console.answer(path, None)
        assert (answer.status_code, body(answer)) == (404, "there is no such file"), path


def test_only_the_import_map_may_run_inline_and_nothing_comes_from_elsewhere(console: Console) -> None:
    headers = console.answer("", None).headers
    found = base64.b64encode(hashlib.sha256(b'{"imports": {}}').digest()).decode()
    policy = dict(each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == f"'self' 'sha256-{found}'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_a_file_that_is_known_already_is_not_sent_again(console: Console) -> None:
    first = console.answer("packages/small.mjs", None)
    assert (first.status_code, first.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    again = console.answer("packages/small.mjs", first.headers["etag"])
    assert (again.status_code, bytes(again.body)) == (304, b"")
    (console.packages / "small.mjs").write_text("export const one = 2;")
    assert console.answer("packages/small.mjs", first.headers["etag"]).status_code == 200


def test_a_console_without_its_packages_says_which_and_what_helps(console: Console) -> None:
    (console.packages / "small.mjs").unlink()
    answer = console.answer("", None)
    assert answer.status_code == 503
    assert "small" in body(answer)
    assert "make setup" in body(answer)


def test_files_are_compressed_for_a_browser_that_takes_that(console: Console) -> None:
    plain, packed = (console.answer("packages/small.mjs", None, packs=packs) for packs in (False, True))
    assert gzip.decompress(bytes(packed.body)) == bytes(plain.body)
    assert (packed.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert packed.headers["etag"] != plain.headers["etag"]
    assert console.answer("packages/small.mjs", packed.headers["etag"], packs=True).status_code == 304
    assert console.answer("packages/small.mjs", plain.headers["etag"], packs=True).status_code == 200


def test_the_files_stay_small_and_name_no_other_host() -> None:
    sizes = {str(each.relative_to(STATIC)): each.stat().st_size for each in FILES}
    assert sum(len(gzip.compress(each.read_bytes())) for each in FILES) < 125_000, "what a browser loads"
    assert sum(sizes.values()) < 320_000, "what a person reads"
    assert {name: size for name, size in sizes.items() if size > 60_000} == {}
    named = [
        each.name for each in FILES if "http" in each.read_text("utf-8").replace(NAMESPACE, "").replace("httpx", "")
    ]
    assert named == []


def test_scripts_keep_the_rules_of_the_house() -> None:
    texts = {str(each.relative_to(STATIC)): each.read_text("utf-8") for each in SCRIPTS}
    assert {name: n for name, text in texts.items() if (n := len(text.splitlines())) > 300} == {}
    assert [name for name, text in texts.items() if not text.startswith("/**")] == []
    # Markup is made by `html`, which escapes; nothing is ever read as markup or as a program.
    for forbidden in (
        r"innerHTML",
        r"outerHTML",
        r"insertAdjacentHTML",
        r"\beval\(",
        r"new Function",
        r"document\.write",
    ):
        assert [name for name, text in texts.items() if re.search(forbidden, text)] == [], forbidden
    assert [f"{name}: {longest}" for name, text in texts.items() if (longest := _longest_function(text)) >= 60] == []


def _longest_function(text: str) -> int:
    """Lines of the longest function that begins at the left margin."""
    return max(
        (
            found.group().count("\n")
            for found in re.finditer(r"^(?:export )?(?:async )?function .*?^}", text, re.M | re.S)
        ),
        default=0,
    )
