"""Messages of Kafka in, pieces of them that are stored together out, with the records in them and what cannot be taken of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from collectors import decode, entry, own
from collectors.decode import Checked
from collectors.door import UNSOUND_TRACES, items_of
from collectors.entry import TOO_LARGE, UnsoundBodyError
from collectors.kafka_body import NO_BODY, NO_JSON, NoBodyError, body_of
from collectors.kafka_progress import Arrived
from collectors.lake_sink import CANNOT, NOWHERE
from collectors.ledger import Note
from collectors.load import DATA_FAULTS
from collectors.load_batch import BATCH_LIMIT_SPANS
from collectors.otlp_json import OtlpJsonError
from collectors.spool_records import Record


@dataclass(frozen=True, slots=True)
class Weighed:
    """A message, the record that it holds (none: its offset is passed, that is all), its size, and why it cannot be taken, if so."""

    message: Arrived
    record: Record | None = None
    spans: int = 0
    expanded_bytes: int = 0
    dropped: tuple[Note, ...] = ()
    refused: Note | None = None
    told: str = ""


@dataclass(slots=True)
class Piece:
    """Messages that are stored together, and the tables that have their rows already."""

    held: frozenset[str]
    items: list[Weighed] = field(default_factory=list)

    @property
    def records(self) -> list[Record]:
        """The records to be read."""
        return [one.record for one in self.items if one.record is not None]

    @property
    def notes(self) -> list[Note]:
        """What of the messages is sound and not kept, for the ledger."""
        return [note for one in self.items for note in one.dropped]

    def alone(self) -> Iterator[Piece]:
        """Each message by itself."""
        return (Piece(self.held, [one]) for one in self.items)


def pieces(held: frozenset[str], items: Iterator[Weighed], limit_bytes: int) -> Iterator[Piece]:
    """Messages in order, as many together as stay within what is read at once, one at least."""
    piece, size_bytes, spans, expanded_bytes = Piece(held), 0, 0, 0
    for one in items:
        own_bytes = len(one.record.body) if one.record else 0
        is_large = size_bytes + own_bytes > limit_bytes or expanded_bytes + one.expanded_bytes > decode.LIMIT_EXPANDED_BYTES
        if piece.items and (is_large or spans + one.spans > BATCH_LIMIT_SPANS):
            yield piece
            piece, size_bytes, spans, expanded_bytes = Piece(held), 0, 0, 0
        piece.items.append(one)
        size_bytes, spans, expanded_bytes = size_bytes + own_bytes, spans + one.spans, expanded_bytes + one.expanded_bytes
    if piece.items:
        yield piece


def weighed(message: Arrived, encoding: str, clock_ns: Callable[[], int]) -> Weighed:
    """A message as the door would look at it."""
    received, sender, signal = clock_ns(), message.place.sender, message.signal
    try:
        body = body_of(message, encoding)
        if signal == "traces":
            whole = decode.check(body)
            _refuse_unsound(whole, len(body))
            body, ours = own.cut(body)
            checked = decode.check(body) if ours else whole
            gone = whole.spans - checked.spans
            left_out = (Note(sender, signal, received, own.REASON, gone, is_dropped=True),) if gone else ()
            record = Record(signal, sender, received, body, NOWHERE, checked.packed)
            return Weighed(message, record if checked.spans else None, checked.spans, checked.expanded_bytes, dropped=left_out)
        body, ours = own.cut(body) if signal in own.SIGNALS else (body, b"")
        found = entry.CHECKS[signal](body)
        if ours:
            found.dropped[own.REASON] += items_of(signal, ours)
    except (UnsoundBodyError, OtlpJsonError, *DATA_FAULTS) as error:
        return Weighed(message, refused=Note(sender, signal, received, _reason(error)), told=str(error))
    dropped = tuple(Note(sender, signal, received, why, count, is_dropped=True) for why, count in found.dropped.items())
    return Weighed(message, Record(signal, sender, received, found.body, NOWHERE) if found.items else None, dropped=dropped)


def _reason(error: Exception) -> str:
    """The ledger's word, without figures."""
    if isinstance(error, UnsoundBodyError):
        return error.reason
    if isinstance(error, NoBodyError):
        return NO_BODY
    return NO_JSON if isinstance(error, OtlpJsonError) else f"{CANNOT}: {type(error).__name__}"


def _refuse_unsound(checked: Checked, size_bytes: int) -> None:
    if not checked.sound:
        msg = f"{UNSOUND_TRACES} ({size_bytes} bytes)"
        raise UnsoundBodyError(msg, UNSOUND_TRACES)
    if checked.too_large:
        raise UnsoundBodyError(checked.too_large, TOO_LARGE)
