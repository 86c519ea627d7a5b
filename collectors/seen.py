"""Hashes of ids and when their spans began in, an answer out: may the store hold them already?

"No" is always right, so that what is new is stored without a look at the store. "Maybe" is right but for one in many millions while
the hash is remembered; minutes whose spans were forgotten, or were never seen by this process, are all "maybe": the store is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from collectors import wire_ids

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Marks = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]

MINUTE_NS = 60 * 1_000_000_000
FIRST_PLACES, MOST_PLACES = 1 << 16, 1 << 21
FULL = 0.75
TABLES = 8


class _Table:
    """The marks of what came in one stretch of time, and the minutes in which it began."""

    def __init__(self, places: int) -> None:
        self.marks: Marks = np.zeros(places, np.uint32)
        self.room = int(places * FULL)
        self.minutes: set[int] = set()

    def note(self, minutes: Ints, hashes: Hashes) -> None:
        wire_ids.remember(self.marks, hashes)
        self.room -= len(hashes)
        self.minutes.update(np.unique(minutes).tolist())


class Seen:
    """What was noted. `unknown` are the ranges of starts, in nanoseconds, in which the store may hold what was never noted here."""

    def __init__(self, unknown: Sequence[tuple[int, int]] = (), tables: int = TABLES) -> None:
        self._tables: list[_Table] = []
        self._most = tables
        self._unknown = unknown
        self._forgotten: set[int] = set()

    def maybe(self, starts_ns: Ints, hashes: Hashes) -> Mask:
        """Whether each may have been noted, or may have been stored without being noted."""
        found = np.zeros(len(hashes), np.bool_)
        for table in self._tables:
            wire_ids.look_up(table.marks, hashes, found)
        for first, last in self._unknown:
            found |= (starts_ns >= first) & (starts_ns <= last)
        if self._forgotten:
            minutes, places = np.unique(starts_ns // MINUTE_NS, return_inverse=True)
            found |= np.isin(minutes, list(self._forgotten))[places]
        return found

    def note(self, starts_ns: Ints, hashes: Hashes) -> None:
        """Remembers hashes; where there are too many, those that came first are forgotten, and their minutes become "maybe"."""
        minutes = starts_ns // MINUTE_NS
        while len(hashes):
            if not self._tables or not self._tables[-1].room:
                self._grow()
            room = self._tables[-1].room
            self._tables[-1].note(minutes[:room], hashes[:room])
            minutes, hashes = minutes[room:], hashes[room:]

    def _grow(self) -> None:
        places = min(FIRST_PLACES << len(self._tables), MOST_PLACES)
        self._tables.append(_Table(places))
        if len(self._tables) > self._most:
            self._forgotten |= self._tables.pop(0).minutes
