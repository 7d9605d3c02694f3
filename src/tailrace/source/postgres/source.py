"""PostgresSource: the door `Source` to a Postgres database, put together from its four parts.

A position's ordinal is an LSN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from tailrace.settings import Watermarking
from tailrace.source.door.source import Source
from tailrace.source.door.values import Claim
from tailrace.source.postgres._reached import Options
from tailrace.source.postgres._rows import PostgresRows
from tailrace.source.postgres._stream import PostgresStream
from tailrace.source.postgres._tables import PostgresTables
from tailrace.source.postgres.codec import PostgresCodec
from tailrace.source.postgres.server.connection import ConnectionOptions
from tailrace.source.postgres.server.history import History
from tailrace.source.postgres.stream.protocol import StreamOptions


class PostgresSource(PostgresCodec, PostgresTables, PostgresStream, PostgresRows, Source):
    """One database of a Postgres server. Its arguments are the fields of `Options`; `stream` has those of
    `StreamOptions`, `connections` those of `ConnectionOptions`."""

    def __init__(  # noqa: PLR0913, PLR0917  each is an option
        self,
        dsn: str,
        slot: str | None = None,
        publication: str | None = None,
        append_only: Sequence[str] = (),
        signal_table: str | None = None,
        watermarks: str = Watermarking.READ_ONLY,
        as_text: Sequence[str] = (),
        stream: Mapping[str, Any] | None = None,
        generated: bool = False,
        connections: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            Options(
                dsn,
                slot,
                publication,
                list(append_only),
                signal_table,
                Watermarking(watermarks),
                list(as_text),
                StreamOptions(**(stream or {})),
                generated,
                ConnectionOptions(**(connections or {})),
            )
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.arguments.values())

    @property
    def arguments(self) -> Mapping[str, Any]:
        return self._options.to_arguments()

    def watermarked(self, how: Watermarking) -> Self:
        return self if how is self._options.watermarks else type(self)(**{**self.arguments, "watermarks": how})

    def claimed(self, claim: Claim) -> Self:
        if claim["owns_publication"] or self._options.publication is not None:
            return self
        claimed = type(self)(**{**self.arguments, "publication": claim["publication"]})
        claimed._history = History.of(claim)
        return claimed
