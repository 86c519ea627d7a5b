"""What became of what was received in, rows of `ingest_entries` out: one count per sender, signal and minute of arrival."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

import numpy as np
import pyarrow as pa

from collectors.spool_records import Record

MINUTE_NS = 60_000_000_000
COUNTS = ("received", "stored", "duplicate", "rejected", "dropped", "late")


@dataclass(frozen=True, slots=True)
class Note:
    """What the door did not put into the spool: refused (`is_dropped` false), or sound and not kept."""

    sender: str
    signal: str
    received_unix_nano: int
    reason: str
    count: int = 1
    is_dropped: bool = False


def drained(notes: SimpleQueue[Note]) -> list[Note]:
    """The notes that wait, taken out."""
    found: list[Note] = []
    with suppress(Empty):
        while True:
            found.append(notes.get_nowait())
    return found


@dataclass(slots=True)
class Tally:
    """What became of one sender's items of one signal in one minute: received = stored + duplicate + rejected + dropped."""

    received: int = 0
    stored: int = 0
    duplicate: int = 0
    rejected: int = 0
    dropped: int = 0
    late: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def found(self, received: int, stored: int, late: int = 0) -> None:
        """Counts items that were read: those that are new, the others being duplicates, and which of them came late."""
        self.received, self.stored = self.received + received, self.stored + stored
        self.duplicate, self.late = self.duplicate + received - stored, self.late + late

    def reject(self, reason: str, count: int = 1) -> None:
        """Counts items that cannot be taken."""
        self.received, self.rejected = self.received + count, self.rejected + count
        self.reasons[reason] += count

    def drop(self, reason: str, count: int = 1) -> None:
        """Counts items that are sound and are not kept."""
        self.received, self.dropped = self.received + count, self.dropped + count
        self.reasons[reason] += count


class Tallies:
    """The tallies of one batch."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str, int], Tally] = {}

    def of(self, record: Record) -> Tally:
        """The tally that a spooled record counts in."""
        return self.at(record.sender, record.signal, record.received_unix_nano)

    def at(self, sender: str, signal: str, received_unix_nano: int) -> Tally:
        """The tally of a sender, a signal and a moment of arrival."""
        return self._of.setdefault((sender, signal, received_unix_nano // MINUTE_NS), Tally())

    def add(self, note: Note) -> None:
        """Counts what the door did not put into the spool."""
        tally = self.at(note.sender, note.signal, note.received_unix_nano)
        (tally.drop if note.is_dropped else tally.reject)(note.reason, note.count)

    def __len__(self) -> int:
        return len(self._of)

    def rows(self) -> pa.Table:
        """Rows of `ingest_entries`."""
        tallies = list(self._of.values())
        minutes = np.array([minute for _, _, minute in self._of], np.int64) * 60_000_000
        return pa.table(
            {
                "sender": pa.array([sender for sender, _, _ in self._of], pa.string()),
                "signal": pa.array([signal for _, signal, _ in self._of], pa.string()),
                "minute": pa.array(minutes).cast(pa.timestamp("us", "UTC")),
                **{name: pa.array([getattr(tally, name) for tally in tallies], pa.int64()) for name in COUNTS},
                "pending": pa.array([0] * len(tallies), pa.int64()),
                "reasons": pa.array([list(tally.reasons.items()) for tally in tallies], pa.map_(pa.string(), pa.int64())),
            }
        )
