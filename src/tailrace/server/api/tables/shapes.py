"""The shapes that a table has had, each with the commit that brought it."""

from __future__ import annotations

from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.log.schema_versions import SchemaVersion
from tailrace.log.survey import shape_commit
from tailrace.model.table_state import TableRecord
from tailrace.server.api.tables.models import ColumnInfo, SchemaInfo
from tailrace.server.moments import moment
from tailrace.source.kinds import codec_of


def shapes_of(home: LakeHome, record: TableRecord) -> list[SchemaInfo]:
    """Oldest first; one that repeats the one before is left out."""
    source = home.source()
    if source is None or not record.relation or not home.has_log:
        return []
    reader, codec = LogReader(home.log), codec_of(source.kind)
    versions: list[SchemaVersion] = []
    for each in reader.schemas(record.relation):
        if not versions or _look(versions[-1]) != _look(each):
            versions.append(each)
    found = []
    for each in versions:
        commit = shape_commit(reader, each)
        found.append(
            SchemaInfo(
                position=each.position,
                commit=None if commit is None else codec.format(commit),
                committed=moment(commit.time_us) if commit is not None and commit.time_us else None,
                columns=[ColumnInfo(name=c.name, source_type=c.source_type, type=c.type) for c in each.schema.columns],
                key=list(each.schema.key),
            )
        )
    return found


def _look(version: SchemaVersion) -> object:
    """What of a shape is shown."""
    return [(each.name, each.source_type, each.type) for each in version.schema.columns], version.schema.key
