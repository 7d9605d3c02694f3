"""The two verbs of the door as Spark's jobs. A share of work becomes a task; what crosses into the JVM are pickled
shares and results, and blobs that are dealt out. No row passes through Spark as a row.

An error of ours comes back as a value, so Spark does not try again what cannot succeed. Any other failure, such as a
worker that was killed, is Spark's: it runs that task again, elsewhere if it can.

Each verb has two bodies. With a SparkContext it is an RDD: the first DataFrame of a session takes seconds to plan and
compile, and a shuffle of one is several jobs. Without one (Spark Connect) it is a DataFrame.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from tailrace.engine.door import Fold, Split
from tailrace.engine.spark.cluster import has_context
from tailrace.errors import TailraceError, passing

Item = TypeVar("Item")
Result = TypeVar("Result")
Batches = Iterable[pa.RecordBatch]

_COLUMNS = "task int, blob binary"
_RAISED = b"tailrace-raised "


@dataclass(frozen=True)
class Raised:
    """What a task ended with instead of results."""

    error: TailraceError


def map_shares(
    spark: SparkSession, shares: Sequence[Sequence[Item]], work: Callable[[Item], Result]
) -> list[list[Result] | Raised]:
    """A task for each share: one result an item."""

    def run(share: Sequence[Item]) -> list[Result] | Raised:
        return _caught(lambda: [work(item) for item in share])  # type: ignore[no-any-return]

    if has_context(spark):
        return spark.sparkContext.parallelize(shares, len(shares)).map(run).collect()

    def run_batches(batches: Batches) -> Iterator[pa.RecordBatch]:
        for share in _items(batches):
            yield _blob(0, pickle.dumps(run(share)))

    return _collected(_in_frame(spark, shares).mapInArrow(run_batches, _COLUMNS))


def shuffle_items(
    spark: SparkSession, items: Sequence[Item], split: Split[Item], tasks: int, fold: Fold[Result]
) -> list[Result | Raised]:
    """A task for each item before the shuffle, and this many after it."""

    def deal(dealt: Iterable[Item]) -> Iterator[tuple[int, bytes]]:
        try:
            for item in dealt:
                yield from split(item)
        except (TailraceError, OSError) as raised:
            # To the first task: whoever folds there passes it on.
            yield 0, _RAISED + pickle.dumps(_ours(raised))

    def gather(pairs: Iterable[tuple[int, bytes]]) -> Iterator[Result | Raised]:
        blobs = _Blobs(blob for _, blob in pairs)
        if blobs.has_any:
            yield _caught(lambda: blobs.folded(fold))

    if has_context(spark):
        dealt = spark.sparkContext.parallelize(items, len(items)).mapPartitions(deal)
        return dealt.partitionBy(tasks, _task_itself).mapPartitions(gather).collect()

    def deal_batches(batches: Batches) -> Iterator[pa.RecordBatch]:
        return (_blob(task, blob) for task, blob in deal(_items(batches)))

    def gather_batches(batches: Batches) -> Iterator[pa.RecordBatch]:
        return (_blob(0, pickle.dumps(result)) for result in gather(_pairs(batches)))

    frame = _in_frame(spark, items).mapInArrow(deal_batches, _COLUMNS)
    return _collected(frame.repartitionById(tasks, "task").mapInArrow(gather_batches, _COLUMNS))


class _Blobs:
    """The blobs of one task, one after another. An error among them is raised."""

    def __init__(self, coming: Iterable[bytes]) -> None:
        self._coming = iter(coming)
        self._first = next(self._coming, None)

    @property
    def has_any(self) -> bool:
        return self._first is not None

    def folded(self, fold: Fold[Result]) -> Result:
        """What becomes of all of them. What `fold` leaves is looked through: an error among it counts."""
        blobs = iter(self)
        result = fold(blobs)
        for _ in blobs:
            pass
        return result

    def __iter__(self) -> Iterator[bytes]:
        # A blob is large: none is held here while the next one is read.
        blob, self._first = self._first, None
        while blob is not None:
            if blob.startswith(_RAISED):
                raise pickle.loads(blob[len(_RAISED) :])
            yield blob
            del blob
            blob = next(self._coming, None)


def _task_itself(task: int) -> int:
    return task


def _caught(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except (TailraceError, OSError) as raised:
        return Raised(_ours(raised))


def _ours(raised: TailraceError | OSError) -> TailraceError:
    if isinstance(raised, TailraceError):
        return raised
    error = passing(raised)
    if error is None:
        raise raised
    return error


def _in_frame(spark: SparkSession, shares: Sequence[Any]) -> Any:
    """The shares in a column, pickled, a task for each."""
    listed = [(number, pickle.dumps(share)) for number, share in enumerate(shares)]
    return spark.createDataFrame(listed, _COLUMNS).repartitionById(len(listed), "task")


def _items(batches: Batches) -> Iterator[Any]:
    return (pickle.loads(content) for _, content in _pairs(batches))


def _pairs(batches: Batches) -> Iterator[tuple[int, bytes]]:
    for batch in batches:
        for task, blob in zip(*batch.columns, strict=True):
            yield task.as_py(), blob.as_py()


def _blob(task: int, content: bytes) -> pa.RecordBatch:
    arrays = [pa.array([task], pa.int32()), pa.array([content], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["task", "blob"])


def _collected(frame: Any) -> list[Any]:
    return [pickle.loads(row["blob"]) for row in frame.collect()]
