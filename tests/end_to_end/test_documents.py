"""Every snippet of every document is run, in the order of the README, by a reader who has the demo's shop.

All of them share one folder, one database and one Spark. A document that shows output shows what really comes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest
from demo import shop
from demo.embedded import EmbeddedPostgres
from tests.journey import QUICK_JVM
from tests.postgres import wait_until
from tests.shared_jvm import SHARED
from tests.snippets import Snippet, is_like, shape, snippets

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCUMENTS = [README, *(ROOT / name for name in re.findall(r"^\| \[(docs/\w+\.md)\]", README.read_text(), re.MULTILINE))]
NOT_RUN = {
    "README.md": ["it installs into the Python that runs the tests"],
    "buckets.md": ["it needs a bucket"],
    "cli.md": ["the other pages use the slot that it drops", "it needs a Spark cluster"],
}
WAIT_SECONDS = 120.0


class Shell:
    """One shell, as long as a document: what is exported in a snippet is there in the next. Its commands come one after
    another, and share the worker's JVM."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        """Its exit code and all that it printed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{{ {command}\n}} < /dev/null\nprintf '\\nend-of-step %s\\n' $?\n")
        self.process.stdin.flush()
        printed = []
        for line in self.process.stdout:
            if line.startswith("end-of-step "):
                return int(line.split()[1]), "".join(printed)
            printed.append(line)
        raise AssertionError(f"the shell ended: {command}: {printed}")

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


class Background:
    """A command that keeps running until the document ends."""

    def __init__(self, command: str, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.printed: list[str] = []
        self._drain = threading.Thread(target=self._read)
        self._drain.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.printed.extend(self._process.stdout)

    def wait_for(self, shown: str) -> None:
        def has_come() -> bool:
            assert self._process.poll() is None, "".join(self.printed)
            return set(shape(shown)) <= set(shape("".join(self.printed)))

        wait_until(has_come, WAIT_SECONDS)

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        """Ctrl-C, as a reader ends it."""
        os.killpg(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(WAIT_SECONDS)
        finally:
            self._process.kill()
            self._drain.join()
            assert self._process.stdout is not None
            self._process.stdout.close()
        assert self._process.returncode in (0, 130), "".join(self.printed)


class Reader:
    """Who reads documents and does what they say. Addresses are those of the test's own servers."""

    def __init__(self, folder: Path, postgres: EmbeddedPostgres) -> None:
        self._folder = folder
        self._dsn = postgres.dsn("shop")
        self._ports = {"5432": str(postgres.port), "8083": str(_free_port())}
        programs = [str(Path(sys.executable).parent), str(postgres.bin_dir), os.environ["PATH"]]
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join(programs),
            "COLUMNS": "120",
            "TAILRACE_JVM_OPTIONS": QUICK_JVM,
        }
        self._python = subprocess.Popen(
            [sys.executable, "-m", "tests.pasting"],
            cwd=folder,
            env={**self._environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._python.communicate()

    def problems(self, document: Path) -> Iterator[str]:
        """What in a document did not happen as it says."""
        with ExitStack() as open_things:
            lent = SHARED.lend()
            shell = open_things.enter_context(Shell(self._folder, self._environment | lent))
            if lent:
                SHARED.lent_to(shell.process)
            for snippet in snippets(document):
                if snippet.why_not_run is not None:
                    continue
                if snippet.keeps_running:
                    ((command, shown),) = snippet.steps
                    running = Background(self.real(command), self._folder, self._environment)
                    open_things.enter_context(running).wait_for(shown)
                    continue
                for number, (text, shown) in enumerate(snippet.steps, 1):
                    code, printed = self._done(snippet, self.real(text), shell)
                    wanted = snippet.exit_code if number == len(snippet.steps) else 0
                    if code != wanted:
                        yield f"{snippet}: exit code {code}, not {wanted}: {text}\n{printed}"
                    elif shown.strip() and not is_like(printed, shown):
                        yield f"{snippet}: {text}\nshows\n{shown}\nand printed\n{printed}"

    def _done(self, snippet: Snippet, text: str, shell: Shell) -> tuple[int, str]:
        if snippet.language == "python":
            return self._pasted(snippet, text)
        if snippet.language == "sql" and snippet.document.name == "sql.md":
            answer = httpx.post(f"http://127.0.0.1:{self._ports['8083']}/sql", json={"sql": text}, timeout=WAIT_SECONDS)
            return int(answer.is_error), answer.text
        if snippet.language == "sql":
            return shell.run(f"psql -qv ON_ERROR_STOP=1 {self._dsn} <<'end-of-sql'\n{text}\nend-of-sql")
        return shell.run(text)

    def _pasted(self, snippet: Snippet, text: str) -> tuple[int, str]:
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        self._python.stdin.write(json.dumps({"document": str(snippet.document), "text": text}) + "\n")
        self._python.stdin.flush()
        answer = json.loads(self._python.stdout.readline())
        return answer["code"], answer["printed"]

    def real(self, text: str) -> str:
        """With the test's own ports."""
        for shown, port in self._ports.items():
            text = re.sub(rf"\b{shown}\b", port, text)
        text = text.replace("tailrace serve", f"tailrace serve --listen 127.0.0.1:{self._ports['8083']}")
        return text.replace("tailrace sql", f"tailrace sql --server http://127.0.0.1:{self._ports['8083']}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def reader(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[Reader]:
    """In a folder with the files that documents link to. The shop's tables belong to the role `app`."""
    dsn = postgres.create_database("shop")
    shop.load(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create role app")
        for table in shop.TABLES:
            conn.execute(f"alter table {table} owner to app")
    try:
        with Reader(tmp_path, postgres) as reader:
            for example in (ROOT / "docs" / "examples").iterdir():
                (tmp_path / example.name).write_text(reader.real(example.read_text(encoding="utf-8")))
            yield reader
    finally:
        postgres.drop_database("shop")
        with psycopg.connect(postgres.dsn(), autocommit=True) as server:
            for role in ("tailrace", "tailrace_reader", "app"):
                server.execute(f"drop role if exists {role}")


@pytest.mark.timeout(900)
def test_every_snippet_of_every_document_happens_as_it_is_written(reader: Reader) -> None:
    problems = [problem for document in DOCUMENTS for problem in reader.problems(document)]
    assert not problems, "\n".join(problems)


def test_what_is_not_run_is_known() -> None:
    found = {
        document.name: [each.why_not_run for each in snippets(document) if each.why_not_run] for document in DOCUMENTS
    }
    assert {name: reasons for name, reasons in found.items() if reasons} == NOT_RUN


def test_every_document_with_a_snippet_is_in_the_readme() -> None:
    assert {each for each in (ROOT / "docs").glob("*.md") if any(snippets(each))} <= set(DOCUMENTS)
