"""What is asked of the server's pgoutput, by the version of the server.

Postgres   protocol   brings
12, 13     1          transactions when they have committed
14         2          parts of large ones while they are open, logical messages
15         3          prepared transactions, when two-phase commit is asked for
16         4          changes of this server alone (`origin`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.errors import DefiniteError

PROTOCOL_MAX = 4
ORIGINS = ("any", "none")
_SINCE = {2: 140000, 3: 150000, 4: 160000}
"""The version that brought each protocol."""


@dataclass(frozen=True)
class StreamOptions:
    """What a person, or a test, wants of the stream."""

    two_phase: bool = False
    """Have prepared transactions sent when they are prepared, not when they are committed."""
    origin: str = "any"
    """`none` leaves out what the server itself received from others by replication."""
    failover: bool = False
    """Have a slot of ours kept by standbys too, so that it is there after one was promoted."""
    protocol_max: int = PROTOCOL_MAX
    is_streaming: bool = True
    """Have large transactions sent while they are open, as far as the server can."""
    silence_seconds_max: float = 120.0
    """A server that is asked all the time and does not answer for so long is looked at: a cut network says nothing."""
    alive_seconds: float = 30.0
    """Another reader of the slot that still answers so long after we first saw it is none that is ending."""
    upkeep_seconds: float = 30.0
    """How often the log is freed of what nothing needs, and the publication is looked at."""

    def __post_init__(self) -> None:
        if self.origin not in ORIGINS:
            raise DefiniteError(f"unknown origin {self.origin!r}", f"known are {', '.join(ORIGINS)}")


DEFAULTS = StreamOptions()


def plugin_options(
    server_version: int, wanted: StreamOptions, publications: Sequence[str], *, is_binary: bool = False
) -> dict[str, str]:
    """pgoutput's options. A definite error where the server is too old for what was asked for."""
    _require(server_version, wanted)
    newest = max((each for each, since in _SINCE.items() if server_version >= since), default=1)
    protocol = min(newest, wanted.protocol_max)
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in publications)
    options = {"proto_version": str(protocol), "publication_names": names}
    if server_version >= _SINCE[2]:
        options["messages"] = "true"
    if is_binary and server_version >= _SINCE[2]:
        options["binary"] = "true"
    if protocol >= 2 and wanted.is_streaming:
        options["streaming"] = "on"
    if wanted.two_phase:
        options["two_phase"] = "on"
    if wanted.origin != "any":
        options["origin"] = wanted.origin
    return options


def _require(server_version: int, wanted: StreamOptions) -> None:
    protocols = {"two-phase commit": (wanted.two_phase, 3), "an origin filter": (wanted.origin != "any", 4)}
    for what, (is_wanted, protocol) in protocols.items():
        since = _SINCE[protocol]
        if is_wanted and server_version < since:
            raise DefiniteError(
                f"Postgres {server_version // 10000} cannot stream with {what}",
                f"leave it out, or use Postgres {since // 10000} or newer",
            )
