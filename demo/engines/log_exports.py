"""Encoded log records in order in, the bytes of OTLP export requests out: they nest as those of spans do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from demo.engines.exports import Exports
from demo.engines.wire import Emitted, Source


class EmittedLog(NamedTuple):
    """An encoded log record, with when it was observed and under which resource and scope it leaves."""

    observed_ns: int
    source: Source
    record: bytes


class LogExports:
    """Puts encoded records under their resources."""

    def __init__(self) -> None:
        self._exports = Exports()

    def bodies(self, emitted: Sequence[EmittedLog]) -> Iterator[tuple[bytes, int]]:
        """`ExportLogsServiceRequest`s of at most 512 records, each with the number of its records."""
        return self._exports.bodies([Emitted(*one) for one in emitted])
