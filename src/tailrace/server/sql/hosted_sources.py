"""The server's connectors as sources of the language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tailrace.errors import TailraceError
from tailrace.model.table_state import TableRecord
from tailrace.server.errors import NotFoundError, RequestConflictError
from tailrace.server.hints import in_properties
from tailrace.server.sql.sources import (
    NameTakenError,
    NoSuchSourceError,
    SourceConfig,
    SourceStatus,
    SourceTableStatus,
    StaleVersionError,
)
from tailrace.server.supervisor.door import ConnectorHost
from tailrace.server.supervisor.supervisor import ConnectorView


class HostedSources:
    """Any thread: the supervisor orders what is done at once."""

    def __init__(self, supervisor: ConnectorHost, who: str | None = None) -> None:
        """`who` asks, for histories."""
        self._supervisor = supervisor
        self._who = who

    def statuses(self) -> list[SourceStatus]:
        return [SourceStatus(view.name, view.state, _problem(view), self._tables(view)) for view in self._views()]

    def config(self, name: str) -> SourceConfig | None:
        try:
            view = self._supervisor.view(name)
        except NotFoundError:
            return None
        return SourceConfig(view.config, view.version)

    def create(self, name: str, properties: Mapping[str, str]) -> Sequence[str]:
        try:
            self._supervisor.create(name, properties, who=self._who)
        except RequestConflictError:
            # The other conflict is a lake, or something in the database, that another source has.
            if name in self._supervisor.names():
                raise NameTakenError(f"there is a source named {name}") from None
            raise
        return self._warnings(name)

    def alter(self, name: str, properties: Mapping[str, str], version: int) -> Sequence[str]:
        with _gone(name):
            try:
                self._supervisor.put(name, properties, version, self._who)
            except RequestConflictError:
                if self._supervisor.view(name).version != version:
                    raise StaleVersionError(f"{name} was changed by another request") from None
                raise
            return self._warnings(name)

    def drop(self, name: str, *, cascade: bool) -> Sequence[str]:
        with _gone(name):
            return self._supervisor.delete(name, drop=cascade, who=self._who)

    def _views(self) -> list[ConnectorView]:
        return self._supervisor.views()

    def _warnings(self, name: str) -> Sequence[str]:
        """A secret that is gone since leaves nothing to say; the source's state will."""
        try:
            return self._supervisor.configuration(name).warnings
        except TailraceError:
            return ()

    def _tables(self, view: ConnectorView) -> list[SourceTableStatus]:
        try:
            records = self._supervisor.lake_home(view.name).tables.load()
        except TailraceError:
            return []
        return [
            SourceTableStatus(str(table), record.state, _reason(record)) for table, record in sorted(records.items())
        ]


def _problem(view: ConnectorView) -> str | None:
    trouble = None if view.status is None else view.status.trouble
    return view.trace or trouble


def _reason(record: TableRecord) -> str | None:
    return record.reason if record.hint is None else f"{record.reason}\nhint: {in_properties(record.hint)}"


@contextmanager
def _gone(name: str) -> Iterator[None]:
    try:
        yield
    except NotFoundError:
        raise NoSuchSourceError(f"there is no source named {name}") from None
