"""Bodies in, acknowledgements out: what every receiver asks before it answers. Acknowledged means on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.decode import Checked
from collectors.spool import Spool, SpoolFullError

RETRY_AFTER_S = 2


class UnsoundBodyError(ValueError):
    """The body is not what it says it is; sending it again will not help."""


class BusyError(RuntimeError):
    """Nothing can be taken now; the same body may be sent again after `retry_after_s`."""

    def __init__(self, message: str, retry_after_s: int = RETRY_AFTER_S) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(slots=True)
class Door:
    """Checks a body, puts it into the spool, and answers once it is durable.

    `check` may be replaced while running: the reference parser stands in until the kernels are compiled.
    """

    spool: Spool
    clock_ns: Callable[[], int]
    note_refused: Callable[[str, int, str], None]
    check: Callable[[bytes], Checked]
    closed: bool = False

    async def admit(self, sender: str, body: bytes) -> int:
        """Takes one trace export; gives the number of its spans, once they are durable.

        Raises:
            UnsoundBodyError: the bytes are no trace export.
            BusyError: the spool is full, the disk refuses, or the server is stopping.
        """
        if self.closed:
            msg = "the server is stopping"
            raise BusyError(msg)
        received = self.clock_ns()
        checked = self.check(body)
        if not checked.sound:
            reason = "body is not a sound ExportTraceServiceRequest"
            self.note_refused(sender, received, reason)
            msg = f"{reason} ({len(body)} bytes)"
            raise UnsoundBodyError(msg)
        if checked.too_large:
            self.note_refused(sender, received, "export is too large")
            raise UnsoundBodyError(checked.too_large)
        if not checked.spans:
            return 0
        try:
            await asyncio.wrap_future(self.spool.append("traces", sender, received, body))
        except SpoolFullError as error:
            raise BusyError(str(error)) from error
        except OSError as error:
            msg = f"the spool cannot be written: {error}"
            raise BusyError(msg) from error
        return checked.spans


def reference_check(body: bytes) -> Checked:
    """The same answer as `decode.check`, by the protobuf package's own parser."""
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        return Checked(sound=False, spans=0)
    spans = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
    return Checked(sound=True, spans=spans)
