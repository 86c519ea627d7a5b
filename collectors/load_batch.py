"""The spool in, the next records by what they become out: as many as a batch may grow to, and which of them cannot be taken."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collectors import decode, otlp_logs
from collectors.door import items_of
from collectors.load_evaluations import EvaluationBatch
from collectors.spool import Spool
from collectors.spool_records import Damage, Position, Record

BATCH_LIMIT_BYTES = 24 * 1024 * 1024
BATCH_LIMIT_SPANS = 150_000
BATCH_LIMIT_OTHER_BYTES = 4 * 1024 * 1024  # of metrics and the like, which are parsed line by line: spans are not to wait for them
# The reference parser, at the door until the kernels are compiled, takes what they do not: deeper nesting, larger bodies.
UNSOUND = "body is nested too deep"


@dataclass(slots=True)
class Batch:
    """The next records, which of them cannot be taken and why, for how many items each counts, and what is damaged between them."""

    records: list[Record] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    items: list[int] = field(default_factory=list)
    damaged: list[Damage] = field(default_factory=list)
    after: Position | None = None
    stored_bytes: int = 0


@dataclass(slots=True)
class Sorted:
    """The records of a batch by what they become."""

    spans: list[Record] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    samples: list[Record] = field(default_factory=list)
    requests: list[Record] = field(default_factory=list)
    evaluations: EvaluationBatch = field(default_factory=EvaluationBatch)
    rejected: list[tuple[Record, str, int]] = field(default_factory=list)


def next_batch(spool: Spool, start: Position, limit_records: int | None) -> Batch:
    """The next records, as many as stay within what a batch may grow to, one at least. One body must not hold up all that come after it."""
    batch = Batch()
    spans = expanded_bytes = other_bytes = 0
    for record in spool.read(start, BATCH_LIMIT_BYTES):
        if isinstance(record, Damage):
            batch.damaged.append(record)
        else:
            checked = decode.counted(record.body, record.counts) if record.signal == "traces" else None
            reason = "" if checked is None else checked.too_large if checked.sound else UNSOUND
            if checked is not None and not reason:
                spans, expanded_bytes = spans + checked.spans, expanded_bytes + checked.expanded_bytes
                if batch.records and (spans > BATCH_LIMIT_SPANS or expanded_bytes > decode.LIMIT_EXPANDED_BYTES):
                    break
            if record.signal != "traces":
                other_bytes += len(record.body)
                if batch.records and other_bytes > BATCH_LIMIT_OTHER_BYTES:
                    break
            if reason:
                batch.refused[len(batch.records)] = reason
            batch.records.append(record)
            batch.items.append(checked.spans if checked is not None and checked.sound else items_of(record.signal, record.body))
        batch.after, batch.stored_bytes = record.after, batch.stored_bytes + record.stored_bytes
        if len(batch.records) == limit_records:
            break
    return batch


def sorted_out(records: list[Record], refused: dict[int, str]) -> Sorted:
    """The records of a batch by what they become; `refused` says which cannot be taken, and why."""
    found = Sorted()
    for number, record in enumerate(records):
        if record.signal == "traces":
            if number in refused:
                found.refused[len(found.spans)] = refused[number]
            else:
                found.evaluations.read_span_events(record)
            found.spans.append(record)
        elif record.signal in ("metrics", "scrapes"):
            found.samples.append(record)
        elif record.signal == "requests":
            found.requests.append(record)
        elif record.signal == "evaluations":
            found.evaluations.read_posted(record)
        else:
            _sort_logs(record, found)
    return found


def _sort_logs(record: Record, found: Sorted) -> None:
    """Puts what a logs export says to the spans and the evaluations, each under the record's own signal."""
    try:
        read = otlp_logs.read(ExportLogsServiceRequest.FromString(record.body), record.received_unix_nano)
    except DecodeError:
        found.rejected.append((record, "body is not a sound ExportLogsServiceRequest", 1))
        return
    if read.span_count:
        found.spans.append(replace(record, body=read.spans.SerializeToString()))
    if read.evaluations:
        found.evaluations.add(record, [*read.evaluations])
    found.rejected.extend((record, reason, count) for reason, count in read.rejected.items())
