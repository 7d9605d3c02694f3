"""What a server asks of a configuration beyond what any connector needs: whoever sends it may be far away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.configuration.reading import Configuration
from tailrace.configuration.secrets import has_reference
from tailrace.server.errors import RequestError
from tailrace.settings import LOCAL_SPARK, SparkSettings

SHOWN = ("name", "topic.prefix")
"""What the API shows as it is: in offsets, for one."""


@dataclass(frozen=True)
class Acceptance:
    """The rules of one server."""

    spark: SparkSettings
    signal_folders: Sequence[Path]
    """Where a file of signals may lie."""

    def require(self, config: Mapping[str, str], found: Configuration) -> None:
        """A request error for a configuration that this server does not run."""
        for key in SHOWN:
            if has_reference(config.get(key, "")):
                raise RequestError(f"{key} is shown to everyone, so nothing of it may be a reference", "write it out")
        if not found.settings.lake.is_absolute():
            # The next server may be started elsewhere, and would begin another lake.
            raise RequestError(f"lake.path '{found.settings.lake}' is relative", "give the whole path, or none")
        if found.settings.spark not in (LOCAL_SPARK, self.spark):
            raise RequestError(
                "Spark is one for all connectors of a server", "leave spark.* out here: tailrace serve --spark-master"
            )
        self._require_signal_file(found.settings.signal_file)

    def _require_signal_file(self, path: Path | None) -> None:
        """Lines of it can be read over REST, so it must be a file that is there for that."""
        if path is None or any(path.resolve().is_relative_to(folder.resolve()) for folder in self.signal_folders):
            return
        raise RequestError(
            "signal.file lies outside the folders for files of signals",
            f"choose one below {self.signal_folders[0]}, or start the server with: --signal-folder DIR",
        )
