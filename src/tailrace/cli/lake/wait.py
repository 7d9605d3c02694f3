"""`tailrace wait`: returns when a lake shows everything that committed up to a position of its source."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import typer
from rich.status import Status

from tailrace.cli.console import PlainConsole
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import LakeAddress
from tailrace.model.position import SourcePosition
from tailrace.read.reached import Approach, HowFar
from tailrace.source.door.codec import Codec
from tailrace.source.kinds import codec_of, source_of

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 0.05, 0.5
"""Between two looks, which are longer and longer apart. Of a folder, one reads some bytes."""
PAUSE_SECONDS_BUCKET = 2.0
"""A bucket charges for each."""
NOT_IN_TIME = 1
"""The exit code."""


@dataclass(frozen=True)
class WaitCommand:
    """What is waited for, and how long."""

    lake: LakeAddress
    position: str | None
    now: bool
    dsn: str | None
    timeout_seconds: float
    as_json: bool


def run_wait(command: WaitCommand) -> None:
    """Print the cut that has it, or how far the lake has come when the time is over: then exit code 1."""
    if (command.position is None) != command.now:
        raise DefiniteError("what is to be waited for?", "give a position, or --now with --dsn")
    if command.dsn is not None and not command.now:
        raise DefiniteError("--dsn is for --now", "leave one of position and --dsn out")
    home = LakeHome.find(command.lake)
    record = home.source()
    assert record is not None
    codec = codec_of(record.kind)
    ordinal = _position_now(home, command.dsn) if command.now else _parsed(codec, command.position or "")
    wanted = codec.format(SourcePosition(ordinal))
    began = time.monotonic()
    found = _awaited(home, codec, ordinal, began + command.timeout_seconds, wanted)
    _print(command, codec, found, wanted, time.monotonic() - began)
    if not found.is_reached:
        raise typer.Exit(NOT_IN_TIME)


def _parsed(codec: type[Codec], text: str) -> int:
    try:
        return codec.parse(text).ordinal
    except ValueError:
        example = codec.format(SourcePosition(0x16B3748))
        raise DefiniteError(f"{text!r} is no position", f"write it as {example}") from None


def _position_now(home: LakeHome, dsn: str | None) -> int:
    """Up to where the source has committed. A lake does not keep the source's address, which may hold a secret."""
    record = home.source()
    assert record is not None
    if dsn is None:
        raise DefiniteError("--now asks the source, and its address is not known", "add --dsn DSN")
    source = source_of(dsn)
    home.require_identity(source.identify())
    return source.claimed(record.claim).now().ordinal


def _awaited(home: LakeHome, codec: type[Codec], ordinal: int, deadline: float, wanted: str) -> HowFar:
    approach, pause = Approach(home, ordinal), PAUSE_SECONDS
    notes = PlainConsole(stderr=True, highlight=False)
    seen, found = approach.signs(), approach.look()
    if found.is_reached:
        return found
    if home.folder.is_dir() and home.holder() is None:
        notes.print("[yellow]note:[/yellow] no tailrace writes this lake now", soft_wrap=True)
    with notes.status("") as shown:
        while not found.is_reached and time.monotonic() < deadline:
            _show(shown, f"waiting for {wanted}: {found.words(codec)}", deadline)
            time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(pause * 1.5, PAUSE_SECONDS_MAX) if home.is_inside else PAUSE_SECONDS_BUCKET
            if (signs := approach.signs()) != seen:
                seen, found = signs, approach.look()
    return found


def _show(shown: Status, text: str, deadline: float) -> None:
    """One line, on a terminal only."""
    shown.update(f"{text} ({max(0.0, deadline - time.monotonic()):.0f} s left)")


def _print(command: WaitCommand, codec: type[Codec], found: HowFar, wanted: str, seconds: float) -> None:
    shown = None if found.cut is None else codec.format(found.cut.position)
    if command.as_json:
        fields = {
            "reached": found.is_reached,
            "wanted": wanted,
            "position": shown,
            "seq": None if found.cut is None else found.cut.seq,
            "seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(fields))
        return
    state = "reached" if found.is_reached else "not reached in time"
    typer.echo(f"{wanted} {state}: {found.words(codec)}")
