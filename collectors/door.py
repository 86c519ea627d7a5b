"""Bodies in, acknowledgements out: what every receiver asks before it answers. Acknowledged means on disk."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors import entry, own
from collectors.decode import Checked
from collectors.entry import TOO_LARGE, Entry, UnsoundBodyError
from collectors.ledger import Note
from collectors.sink import Sink, SinkFullError
from collectors.waiting import Waiting
from queries.lake_errors import LakeError

RETRY_AFTER_S = 2
UNSOUND_TRACES = "body is not a sound ExportTraceServiceRequest"


class BusyError(RuntimeError):
    """Nothing can be taken now; the same body may be sent again after `retry_after_s`. `is_stopping` where the server ends.

    `reason`: backlog, disk, unwritable, lake or stopping.
    """

    def __init__(self, message: str, retry_after_s: int = RETRY_AFTER_S, *, is_stopping: bool = False, reason: str = "backlog") -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.is_stopping = is_stopping
        self.reason = "stopping" if is_stopping else reason


class Handled(NamedTuple):
    """What became of one body: taken, unsound, too_large, failed, or the reason of a `BusyError`; after how long.

    `is_own` says that it held what a Leverwatch tells of itself.
    """

    signal: str
    outcome: str
    items: int
    size_bytes: int
    elapsed_s: float
    is_own: bool = False


@dataclass(slots=True)
class Door:
    """Checks a body, hands it to the sink, and answers once it is durable.

    `check` may be replaced while running: the reference parser stands in until the kernels are compiled. `waiting` counts what is durable
    and not stored yet; it is None where the two are one. `told` hears what became of each body.
    """

    sink: Sink
    clock_ns: Callable[[], int]
    note: Callable[[Note], None]
    check: Callable[[bytes], Checked]
    closed: bool = False
    waiting: Waiting | None = field(default_factory=Waiting)
    told: Callable[[Handled], None] = lambda _: None

    async def take(self, signal: str, sender: str, body: bytes) -> Entry:
        """Takes one body of a signal; gives what was taken of it, once that is durable.

        Raises:
            UnsoundBodyError: the bytes are not of that signal, or beyond a limit.
            BusyError: too much waits, the disk or the lake refuses, or the server is stopping.
        """
        return await self._watched(signal, body, self._traces(sender, body) if signal == "traces" else self._others(signal, sender, body))

    async def admit(self, sender: str, body: bytes) -> int:
        """Takes one trace export; gives the number of its spans, once they are durable.

        Raises:
            UnsoundBodyError, BusyError: as `take`.
        """
        return (await self.take("traces", sender, body)).items

    def refuse(self, signal: str, sender: str, reason: str, size_bytes: int = 0) -> None:
        """Counts a body that a receiver could not read far enough to bring it here."""
        self.note(Note(sender, signal, self.clock_ns(), reason))
        self.told(Handled(signal, "too_large" if reason == TOO_LARGE else "unsound", 0, size_bytes, 0.0))

    async def _watched(self, signal: str, body: bytes, taking: Awaitable[Entry]) -> Entry:
        began_s, outcome, items, is_own = time.perf_counter(), "failed", 0, False
        try:
            found = await taking
            outcome, items, is_own = "taken", found.items, own.REASON in found.dropped
        except UnsoundBodyError as error:
            outcome = "too_large" if error.reason == TOO_LARGE else "unsound"
            raise
        except BusyError as error:
            outcome = error.reason
            raise
        finally:
            self.told(Handled(signal, outcome, items, len(body), time.perf_counter() - began_s, is_own))
        return found

    async def _others(self, signal: str, sender: str, body: bytes) -> Entry:
        self._refuse_if_closed()
        received = self.clock_ns()
        kept, ours = own.cut(body) if signal in own.SIGNALS else (body, b"")
        try:
            found = await asyncio.to_thread(entry.CHECKS[signal], kept)
        except UnsoundBodyError as error:
            self.note(Note(sender, signal, received, error.reason))
            raise
        if found.items:
            await self._put(signal, sender, received, found.body, found.items)
        if ours:
            found.dropped[own.REASON] += items_of(signal, ours)
        for reason, count in found.dropped.items():
            self.note(Note(sender, signal, received, reason, count, is_dropped=True))
        return found

    async def _traces(self, sender: str, body: bytes) -> Entry:
        self._refuse_if_closed()
        received = self.clock_ns()
        checked = self.check(body)
        if not checked.sound:
            self.note(Note(sender, "traces", received, UNSOUND_TRACES))
            msg = f"{UNSOUND_TRACES} ({len(body)} bytes)"
            raise UnsoundBodyError(msg, UNSOUND_TRACES)
        if checked.too_large:
            self.note(Note(sender, "traces", received, TOO_LARGE))
            raise UnsoundBodyError(checked.too_large, TOO_LARGE)
        dropped = Counter[str]()
        kept, ours = own.cut(body)
        if ours:
            dropped[own.REASON] = checked.spans
            checked = self.check(kept)
            dropped[own.REASON] -= checked.spans
            self.note(Note(sender, "traces", received, own.REASON, dropped[own.REASON], is_dropped=True))
        if checked.spans:
            await self._put("traces", sender, received, kept, checked.spans, checked.packed)
        return Entry(b"", checked.spans, dropped)

    def _refuse_if_closed(self) -> None:
        if self.closed:
            msg = "the server is stopping"
            raise BusyError(msg, is_stopping=True)

    async def _put(self, signal: str, sender: str, received: int, body: bytes, items: int, counts: bytes = b"") -> None:
        try:
            await asyncio.wrap_future(self.sink.append(signal, sender, received, body, counts))
        except SinkFullError as error:
            raise BusyError(str(error), reason=error.reason) from error
        except OSError as error:
            msg = f"the spool cannot be written: {error}"
            raise BusyError(msg, reason="unwritable") from error
        except LakeError as error:
            msg = f"the lake cannot be written: {error}"
            raise BusyError(msg, reason="lake") from error
        if self.waiting is not None:
            self.waiting.add(sender, signal, items)


def items_of(signal: str, body: bytes) -> int:
    """How many items a spooled body counts for, by the protobuf package's own parser; 0 where it cannot be read."""
    if signal == "traces":
        return reference_check(body).spans
    try:
        return entry.SPOOLED[signal](body).items
    except UnsoundBodyError:
        return 0


def reference_check(body: bytes) -> Checked:
    """The same answer as `decode.check`, by the protobuf package's own parser."""
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        return Checked(sound=False, spans=0)
    spans = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
    return Checked(sound=True, spans=spans)
