"""What the capture process of a lake is told when it is started."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from tailrace.connector.start.capture_process import CaptureOrder
from tailrace.lake.home import SourceRecord
from tailrace.log.write.writer import LogOptions
from tailrace.settings import ConnectorSettings
from tailrace.source.door.source import Source
from tailrace.source.kinds import path_of


def order_of(source: Source, record: SourceRecord, log: Path, settings: ConnectorSettings) -> CaptureOrder:
    options = LogOptions(
        segment_bytes_max=settings.log_segment_bytes_max,
        quota_bytes=settings.log_quota_bytes,
        compression=settings.log_compression,
    )
    return CaptureOrder(
        source=path_of(source),
        arguments=source.arguments,
        claim=record.claim,
        identity=record.identity,
        log=str(log),
        keep_seconds=settings.log_keep_seconds,
        log_options=asdict(options),
    )
