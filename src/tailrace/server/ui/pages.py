"""`/ui/`: the console's files, as they lie in this package. Every path that is none of them is the one page, which
shows what its path says.

The page loads nothing from elsewhere, runs only what comes from here, and no other page may frame it; its header says
so. The files hold no secret, so they need no token: what they show comes from the API, which does.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

FOLDER = Path(__file__).parent
STATIC, PACKAGES = FOLDER / "static", FOLDER / "packages"
IMPORT_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)
PACKED_MAX = 200
"""How many files are kept as they are sent."""
WORKER = "worker.js"
"""Runs beside the page and is no part of it."""
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self' '{hash}'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
INCOMPLETE = """<!doctype html>
<html lang="en">
<title>Tailrace</title>
<h1>The console is not complete</h1>
<p>This server runs, and its API answers. The console needs {missing}, which are fetched when Tailrace is set up.</p>
<p>In a checkout: <code>make setup</code>, or <code>python scripts/ui_packages.py</code>. Then load this page again.</p>
</html>
"""

router = APIRouter()


@dataclass(frozen=True)
class Console:
    """The files of one console."""

    static: Path = STATIC
    packages: Path = PACKAGES
    wanted: Path = FOLDER / "packages.json"

    def answer(self, path: str, known_tag: str | None, *, packs: bool = False) -> Response:
        """What a path below `/ui/` shows. A browser that `packs` gets it compressed."""
        folder, _, name = path.partition("/")
        if folder in ("static", "packages"):
            found = self._found(self.static if folder == "static" else self.packages, name)
            if found is None:
                return Response("there is no such file", 404, self._headers(), "text/plain")
            return self._sent(found.read_bytes(), found.suffix, known_tag, packs=packs)
        missing = self._missing()
        if missing:
            return HTMLResponse(INCOMPLETE.format(missing=" and ".join(missing)), 503, self._headers())
        page = (self.static / "index.html").read_bytes()
        return self._sent(page.replace(b"</head>", self._preloads()), ".html", known_tag, packs=packs)

    def _preloads(self) -> bytes:
        """Every module is asked for at once, and not only when the one that imports it has come."""
        ours = (f"static/{each.relative_to(self.static)}" for each in self.static.rglob("*.js") if each.name != WORKER)
        others = (f"packages/{each.name}" for each in self.packages.glob("*.mjs"))
        links = [f'<link rel="modulepreload" href="/ui/{each}">' for each in sorted([*ours, *others])]
        return "\n".join([*links, "</head>"]).encode()

    def _found(self, folder: Path, name: str) -> Path | None:
        # Looked up among what is there, so that no path leads out of the folder.
        return {str(each.relative_to(folder)): each for each in folder.rglob("*") if each.suffix in KINDS}.get(name)

    def _sent(self, content: bytes, suffix: str, known_tag: str | None, *, packs: bool) -> Response:
        headers = self._headers() | {"vary": "accept-encoding"}
        if packs:
            content = _packed(content)
            headers["content-encoding"] = "gzip"
        headers["etag"] = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        if known_tag == headers["etag"]:
            return Response(None, 304, headers)
        return Response(content, 200, headers, KINDS[suffix])

    def _headers(self) -> dict[str, str]:
        return {
            "content-security-policy": POLICY.format(hash=self._import_map_hash()),
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            # Asked for again each time, answered 304: a server that is another version has its own pages at once.
            "cache-control": "no-cache",
        }

    def _import_map_hash(self) -> str:
        found = IMPORT_MAP.search((self.static / "index.html").read_bytes())
        assert found is not None
        return f"sha256-{base64.b64encode(hashlib.sha256(found.group(1)).digest()).decode()}"

    def _missing(self) -> list[str]:
        """The packages that were not fetched."""
        wanted = json.loads(self.wanted.read_text(encoding="utf-8"))
        there = {each.name for each in self.packages.glob("*")}
        return [each["name"] for each in wanted if not there.issuperset(each["files"].values())]


@lru_cache(PACKED_MAX)
def _packed(content: bytes) -> bytes:
    # The same bytes for the same content: the tag is theirs.
    return gzip.compress(content, mtime=0)


CONSOLE = Console()


@router.get("/ui", include_in_schema=False)
@router.get("/ui/{path:path}", include_in_schema=False)
def get_page(request: Request, path: str = "") -> Response:
    """The console."""
    packs = "gzip" in request.headers.get("accept-encoding", "")
    return CONSOLE.answer(path, request.headers.get("if-none-match"), packs=packs)
