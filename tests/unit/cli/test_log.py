"""`tailrace log` shows what is there as it is, and says what is wrong in one line and a hint."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.unit.log.records import UnsyncedDisk, batch, begin, change, in_memory, open_log, schema, transaction
from typer.testing import CliRunner

from tailrace.cli.commands import app
from tailrace.log.consumers import Consumers
from tailrace.log.files.layout import index_path, segment_path
from tailrace.log.verify import rebuild_index, verify
from tailrace.log.write.writer import LogWriter
from tailrace.model.position import SourcePosition
from tailrace.source.kinds import register

COMMANDS = ("ls", "show", "stats", "verify", "rebuild-index")
NOON_US = 1_794_052_800_000_000
"""2026-11-07T12:00:00Z"""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with in_memory() as folder:
        yield Path(folder)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three segments: 4 finished transactions, an active one, two consumers and a pin. Positions 0 to 16."""
    path = tmp_path / "lake" / "_tailrace" / "log"
    writer = open_log(path, clock=lambda: NOON_US)
    writer.append(batch([schema(1, "id"), *transaction(7, 100, b"one", time_us=NOON_US)]))
    writer.roll()
    writer.append(batch([begin(9), change(9, b"waits", sub_xid=3), *transaction(8, 200, b"x" * 5000, time_us=NOON_US)]))
    writer.roll()
    writer.append(batch(transaction(10, 300, b"three")))
    writer.append(batch(transaction(11, 400, b"four", time_us=NOON_US)))
    writer.flush()
    writer.close()
    consumers = Consumers(path)
    consumers.acknowledge("lake", 4)
    consumers.acknowledge("report", 1)
    consumers.pin("query", 2)
    return path


class Result:
    """What a command printed, and how it ended."""

    def __init__(self, arguments: tuple[object, ...], **variables: str) -> None:
        result = CliRunner().invoke(app, ["log", *map(str, arguments)], env={"COLUMNS": "80", **variables})
        self.code, self.output, self.errors = (result.exit_code, _plain(result.stdout), _plain(result.stderr))
        self.lines = self.output.splitlines()


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def run(*arguments: object, **variables: str) -> Result:
    result = Result(arguments, **variables)
    assert (result.code, result.errors) == (0, ""), result.output + result.errors
    return result


def refused(*arguments: object) -> str:
    """One error line and one hint line, which are returned; nothing else, and exit code 2."""
    result = Result(arguments)
    assert [line.split(":")[0] for line in result.errors.splitlines()] == ["error", "hint"], result.errors
    assert (result.code, result.output) == (2, "")
    return result.errors


@pytest.mark.parametrize("command", COMMANDS)
def test_a_path_that_is_no_log_is_refused(path: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "empty").mkdir()
    assert "does not exist" in refused(command, tmp_path / "missing")
    assert "is not a log" in refused(command, tmp_path / "empty")
    assert "is a file" in refused(command, path / "log.json")
    assert f"its log is in {path}" in refused(command, tmp_path / "lake")


def test_show_refuses_what_is_not_there_and_says_what_is(path: Path) -> None:
    assert "holds transactions 1 to 4" in refused("show", path, "--seq", 5)
    assert "--seq 1" in refused("show", path, "--seq", -7)
    assert "holds positions 0 to 16" in refused("show", path, "--position", "99,999")
    assert "--position 16" in refused("show", path, "--position", 17)
    assert "--position 0" in refused("show", path, "--position", -1)
    assert "COMMIT" in run("show", path, "--position", 16).lines[1]
    assert "must be 1 or more" in refused("show", path, "--limit", -3)
    assert "exclude each other" in refused("show", path, "--seq", 1, "--position", 1)


def test_an_empty_log_is_shown_as_such(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    assert "no finished transaction" in refused("show", tmp_path, "--seq", 1)
    assert "holds no records yet" in refused("show", tmp_path, "--position", 0)
    assert len(run("show", tmp_path).lines) == 1
    assert "0 transactions" in run("stats", tmp_path).output
    assert len(run("ls", tmp_path).lines) == 2


def test_positions_start_where_retention_has_left_them(path: Path) -> None:
    writer = open_log(path, clock=lambda: NOON_US)
    Consumers(path).forget("report")
    assert len(writer.retain()) == 1
    writer.close()
    assert "holds positions 4 to 16" in refused("show", path, "--position", 0)
    assert run("show", path).lines[1].split()[0] == "4"
    Consumers(path).acknowledge("new", 0)
    assert "4 transactions, 5.0 KiB, 1 of them deleted" in run("ls", path).output


@pytest.mark.parametrize("command", ["ls", "show", "stats", "rebuild-index"])
def test_a_damaged_log_is_an_error_that_names_the_file(path: Path, command: str) -> None:
    segment = segment_path(path, 4)
    segment.write_bytes(b"\xff" * segment.stat().st_size)
    assert segment.name in refused(command, path)


@pytest.mark.parametrize("position", [0, 4, 10])
def test_verify_prints_every_problem_on_a_line_and_ends_with_1(path: Path, position: int) -> None:
    segment = segment_path(path, position)
    segment.write_bytes(b"\xff" * segment.stat().st_size)
    (path / "head").unlink()
    result = Result(("verify", path))
    assert result.code == 1
    assert any(line.startswith(f"segment {segment} is damaged at byte") for line in result.lines)
    assert "problem" in result.output
    assert "rebuild-index" not in result.output


def test_verify_says_that_log_json_is_damaged(path: Path) -> None:
    (path / "log.json").write_text("{}")
    result = Result(("verify", path))
    assert result.code == 1
    assert result.lines[0].startswith(f"{path / 'log.json'} is damaged")
    assert f"mv {path} {path}.damaged" in refused("ls", path)


@pytest.mark.parametrize("suffix", [".frames", ".transactions", ".lists", ".marks"])
def test_the_hint_for_a_wrong_index_is_a_command_that_mends_it(path: Path, suffix: str) -> None:
    index_path(path, 0, suffix).write_bytes(b"")
    result = Result(("verify", path))
    assert result.code == 1, result.output
    name, group, *command = shlex.split(result.lines[-1].removeprefix("hint: "))
    assert (name, group, command[0]) == ("tailrace", "log", "rebuild-index")
    assert "4 transactions indexed" in run(*command).output
    assert "every checksum and the index agree" in run("verify", path).output


def test_a_log_without_index_files_is_listed(path: Path) -> None:
    for suffix in (".frames", ".lists", ".marks"):
        index_path(path, 4, suffix).unlink()
    assert "3 transactions, size unknown, the index is damaged" in run("ls", path).output


@contextmanager
def another_user() -> Iterator[None]:
    """Root may read everything, so tests that run as root become nobody for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("closed", ["", "log.json", "head", "00000000000000000000.arrows"])
def test_a_log_that_may_not_be_read_is_refused(path: Path, closed: str) -> None:
    for folder in path.parents:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
    (path / closed).chmod(0)
    try:
        with another_user():
            found = refused("stats", path)
    finally:
        (path / closed).chmod(0o700)
    assert "permission denied" in found
    assert "as the user who runs tailrace sync" in found


def test_what_else_the_disk_refuses_is_said(path: Path) -> None:
    (path / "log.json").unlink()
    (path / "log.json").mkdir()
    assert f"error: cannot read {path / 'log.json'}: is a directory" in refused("ls", path)


def test_a_log_that_is_being_written_is_not_rebuilt(path: Path) -> None:
    writer = open_log(path)
    assert "is being written by process" in refused("rebuild-index", path)
    writer.close()


def test_what_looks_like_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "[red]log"
    writer = open_log(path)
    payloads = [b"[/nope]", b"[red]text", b":smile: [link=file:///x]y", b"\x1b[31mred", b"\\[bold]"]
    writer.append(batch(transaction(7, 100, *payloads)))
    writer.flush()
    writer.close()
    Consumers(path).acknowledge("[bold]me[/x]", 0)
    for shown in (run("show", path).output, run("show", path, "--seq", 1).output):
        for payload in ("[/nope]", "[red]text", ":smile: [link=file:///x]y", "\\x1b[31mred", "\\[bold]"):
            assert payload in shown
    assert "[bold]me[/x]" in run("ls", path).output
    assert "[red]log" in refused("show", path, "--seq", 2)
    segment = segment_path(path, 0)
    segment.write_bytes(segment.read_bytes()[:-9] + b"[/broken]")
    assert "[red]log" in Result(("verify", path)).output


def test_a_consumer_ahead_of_the_log_is_said_to_be_ahead(path: Path) -> None:
    Consumers(path).acknowledge("stray", 1_000_003)
    for command in ("ls", "stats"):
        (line,) = [line for line in run(command, path).lines if line.startswith("stray")]
        assert line.split(maxsplit=2)[1:] == ["1,000,003", "999,999 transactions ahead of the head: not of this log"]


def test_ls_and_stats_show_sizes_times_and_lags(path: Path) -> None:
    listed = run("ls", path)
    assert listed.lines[0].split() == ["segment", "records", "last", "seq", "size", "created"]
    assert listed.lines[2].split()[:3] == ["00000000000000000004.arrows", "6", "2"]
    assert listed.lines[2].endswith(" KiB  2026-11-07T12:00Z")
    assert "lake                  4  up to date" in listed.output
    assert "report                1  3 transactions, 5.0 KiB" in listed.output
    assert "pin query             2  2 transactions, 75 B" in listed.output
    summed = run("stats", path).output
    assert "transaction 4, position 17" in summed
    assert "source position    408" in summed
    assert "2026-11-07T12:00:00Z to 2026-11-07T12:00:00Z" in summed
    assert "xid 9 since position 5" in summed


def test_records_are_shown_with_table_names_and_times(path: Path) -> None:
    lines = run("show", path).lines
    assert "INSERT  public.t1  one" in lines[3]
    assert lines[4].endswith("commit 100 end 108 at 2026-11-07T12:00:00Z")
    assert len(lines) == 18
    assert lines[9].endswith("x" * 5000)
    assert [line.split()[0] for line in run("show", path, "--limit", 3).lines[1:]] == ["14", "15", "16"]


class HexSource:
    """As much of a source as `tailrace log` needs."""

    @staticmethod
    def format(position: SourcePosition) -> str:
        return f"<{position.ordinal:X} {position.detail.decode()}>"


def test_positions_of_the_source_are_shown_as_the_source_writes_them(tmp_path: Path) -> None:
    register("hex", f"{__name__}:HexSource")
    with closing(LogWriter.open(tmp_path, {"source": "hex"}, disk=UnsyncedDisk())) as writer:
        writer.append(batch(transaction(7, 255, b"a", detail=b"gtid")))
        writer.flush()
    lines = run("show", tmp_path).lines
    assert lines[0].split()[:3] == ["position", "source", "position"]
    assert lines[3].split()[1:3] == ["<FF", ">"]
    assert "commit <FF gtid> end <107 gtid> at" in lines[3]
    assert "source position  <107 >" in run("stats", tmp_path).output


@pytest.mark.parametrize("identity", [{}, {"source": "gone"}, {"source": "unloadable"}, {"source": "hollow"}])
def test_a_log_whose_kind_of_source_is_not_there_is_shown_with_plain_numbers(
    tmp_path: Path, identity: dict[str, str]
) -> None:
    register("unloadable", "no.such.module:Source")
    register("hollow", f"{__name__}:NoSuchSource")
    with closing(LogWriter.open(tmp_path, identity, disk=UnsyncedDisk())) as writer:
        writer.append(batch(transaction(7, 255, b"a")))
        writer.flush()
    assert "commit 255 end 263 at" in run("show", tmp_path).output
    assert "source position  263" in run("stats", tmp_path).output


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", ["ls", "stats", "show"])
def test_a_terminal_is_filled_and_not_overflowed(path: Path, command: str, columns: int) -> None:
    shown = run(command, path, COLUMNS=str(columns), FORCE_COLOR="1")
    assert max(map(cell_len, shown.lines)) <= columns
    assert "…" not in shown.output.replace("x… ", "")


def test_long_work_shows_how_far_it_is_on_a_terminal_only(path: Path) -> None:
    for command in ("verify", "rebuild-index"):
        assert run(command, path)
        assert "3/3 segments" in Result((command, path), FORCE_COLOR="1").errors


def test_verify_and_rebuild_tell_of_every_segment(path: Path) -> None:
    told: list[tuple[int, int]] = []
    verify(path, lambda done, total: told.append((done, total)))
    rebuild_index(path, lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)] * 2


def test_help_teaches_the_words_the_place_and_the_exit_codes() -> None:
    taught = " ".join(run("--help").output.split())
    for word in ("sequence number counts", "position counts", "consumer is", "LAKE/_tailrace/log", "Example: tailrace"):
        assert word in taught
    for command in COMMANDS:
        taught = " ".join(run(command, "--help").output.split())
        assert f"Example: tailrace log {command} ./lake/_tailrace/log" in taught
        assert "LAKE/_tailrace/log" in taught
        assert "Exit codes: 0" in taught
