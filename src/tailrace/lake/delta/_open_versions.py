"""Published versions that a session has open.

A version never changes, but each query over it asks Delta again which files it consists of, which
takes about a second: more than a live read may take in all. So small tables that are read live are
kept in Spark's cache, the last few of them; large ones are scanned, where that second does not count.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tailrace.lake.delta.file_names import files_in
from tailrace.lake.delta.log.versions import CommitLog
from tailrace.lake.door import UnfitSessionError
from tailrace.storage.door import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT_BYTES_MAX = 32 << 20
KEPT_TABLES_MAX = 32

_Key = tuple[str, int, int]
"""Path, version, and when it was made: another table may be built in the same place."""
_kept: WeakKeyDictionary[SparkSession, OrderedDict[_Key, DataFrame]] = WeakKeyDictionary()

LACKS_DELTA = ("DATA_SOURCE_NOT_FOUND", "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG")
"""Without Delta's jar, and with it but without the two settings."""
HINT = """\
in a Python without a Spark session: spark = tailrace.spark_session(). Or give your own session Delta when it is made:

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

spark = configure_spark_with_delta_pip(
    SparkSession.builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension").config(
        "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    )
).getOrCreate()"""


def open_version(spark: SparkSession, log: CommitLog, version: int, *, keep: bool) -> DataFrame:
    """One version of a Delta table; with `keep`, ready to be read again soon."""
    path = log.table.address
    if not keep:
        return _read(spark, path, version)
    kept = _kept.setdefault(spark, OrderedDict())
    commit = log.table.look(log.commit_file(version))
    wanted = (path, version, commit.changed_ns if commit else 0)
    frame = kept.pop(wanted, None)
    if frame is None:
        for other in [key for key in kept if key[0] == path]:
            kept.pop(other).unpersist()
        frame = _read(spark, path, version)
        if _bytes(log.table) <= KEPT_BYTES_MAX:
            from pyspark import StorageLevel

            frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
    kept[wanted] = frame
    while len(kept) > KEPT_TABLES_MAX:
        kept.popitem(last=False)[1].unpersist()
    return frame


def _read(spark: SparkSession, path: str, version: int) -> DataFrame:
    try:
        return spark.read.format("delta").option("versionAsOf", version).load(path)
    except Exception as error:
        # pyspark turns only the second into an error of its own.
        if any(code in str(error) for code in LACKS_DELTA):
            raise UnfitSessionError("this Spark session has no Delta", HINT) from None
        raise


def _bytes(table: Storage) -> int:
    """At most this much: files of older versions count too, and to leave them out would cost what this saves."""
    return sum(file.bytes for file in files_in(table).values())


def forget(address: str) -> None:
    """Let a Spark of this process look at a table again: Delta remembers the newest version of each."""
    pyspark = sys.modules.get("pyspark")
    context = pyspark.SparkContext._active_spark_context if pyspark else None
    if context is None:
        return
    from pyspark.sql import SparkSession

    session, jvm = SparkSession.builder.getOrCreate(), context._jvm
    assert jvm is not None
    place = jvm.org.apache.hadoop.fs.Path(address)
    jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(session._jsparkSession, place)
