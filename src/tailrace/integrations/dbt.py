"""A plugin for dbt-duckdb: every model of a run reads all tables of a lake as of one commit.

    # profiles.yml
    plugins:
      - module: tailrace.integrations.dbt
        config:
          lake: ./lake
          as_of: "{{ env_var('TAILRACE_AS_OF', '') }}"

The cut is chosen once, when the first model connects, and each connection of the run gets the same one. Nothing of dbt
is imported: it asks a plugin for these methods and for no class.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import LakeAddress, parse_lake
from tailrace.read.cut import Cut, cut
from tailrace.read.names import TableNames

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

logger = logging.getLogger(__name__)


class Plugin:
    """Its tables are temporary views, called as in the source: `orders`, and `"public.orders"` in one pair of quotes.

    `getvariable('tailrace_cut')` is the cut's position, and `tailrace_committed` when the source committed there.
    """

    def __init__(self, name: str, plugin_config: Mapping[str, Any], credentials: Any = None) -> None:
        if not plugin_config.get("lake"):
            raise DefiniteError(f"the plugin {name} has no lake", "in profiles.yml, under config:  lake: ./lake")
        self.name = name
        self._lake = _lake(plugin_config)
        self._tables: list[str] | None = plugin_config.get("tables")
        as_of = plugin_config.get("as_of") or None
        self._choose = partial(cut, published=bool(plugin_config.get("published")), as_of=as_of, register=False)
        self._lock = threading.Lock()
        self._chosen: Cut[Any] | None = None

    def update_connection_config(self, creds: Any, config: dict[str, Any]) -> None:
        """Nothing is set before DuckDB is opened."""

    def configure_connection(self, conn: DuckDBPyConnection) -> None:
        """Choose the cut, once: dbt may open its database again between two models."""
        with self._lock:
            if self._chosen is None:
                self._chosen = self._choose(conn, self._lake)
                when = f"{self._chosen.commit_time:%Y-%m-%d %H:%M:%S.%f}"
                logger.info("every model reads %s as of %s, committed %s", self._lake, self._chosen.text, when)

    def configure_cursor(self, cursor: DuckDBPyConnection) -> None:
        """The cut's tables, for one of dbt's threads. What a connection registers, no other connection sees."""
        assert self._chosen is not None
        same: Cut[Any] = cut(cursor, self._lake, as_of=self._chosen.position, register=False)
        if same.seq != self._chosen.seq:
            raise DefiniteError(
                f"the lake shows another cut at {self._chosen.text} than before", "run dbt again for a new cut"
            )
        if self._tables is None:
            same.register()
        else:
            _register(same, LakeHome.find(self._lake), self._tables)
        cursor.execute("set variable tailrace_cut = $1", [same.text])
        cursor.execute("set variable tailrace_committed = $1", [same.commit_time])

    def load(self, source_config: Any) -> Any:
        raise DefiniteError("tables of a lake need no plugin in their source", "leave out meta: plugin")

    def store(self, target_config: Any) -> None:
        raise DefiniteError("a lake is written by its connector alone", "store the model elsewhere")

    def default_materialization(self) -> str:
        return "view"


def _lake(config: Mapping[str, Any]) -> LakeAddress:
    options = [(str(name), str(value)) for name, value in (config.get("storage_options") or {}).items()]
    home = config.get("home")
    return parse_lake(str(config["lake"]), options, Path(home) if home else None)


def _register(found: Cut[Any], home: LakeHome, tables: list[str]) -> None:
    names = TableNames(found.tables.known, found.engine.dialect)
    for each in tables:
        table = home.table_named(each)
        frame = found.tables[str(table)]
        for view in names.views(table):
            found.engine.show(view, frame)
