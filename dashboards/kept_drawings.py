"""What was drawn, or could not be, by what was asked for: in, and out again for as long as it fits into so many bytes.

Pages are asked for again every few seconds by each that looks at them, and most of their numbers change with a block.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass

ENTRY_BYTES = 500  # what an entry takes beside its drawing


@dataclass(frozen=True)
class Drawn:
    """A drawing as SVG; None where there is none, and why."""

    svg: str | None
    why: str = ""

    @property
    def size_bytes(self) -> int:
        """How much memory it takes, about."""
        return len((self.svg or self.why).encode()) + ENTRY_BYTES


class KeptDrawings:
    """The drawings that were asked for last. Thread-safe; times are on `time.monotonic`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._entries: OrderedDict[bytes, tuple[Drawn, int, float]] = OrderedDict()
        self._lock = threading.Lock()
        self.size_bytes = 0

    def find(self, specification: str, now_s: float) -> Drawn | None:
        """What came of a specification; None where that is not kept."""
        name = _name(specification)
        with self._lock:
            drawn, _, until_s = self._entries.get(name, (None, 0, 0.0))
            if drawn is None or until_s <= now_s:
                return None
            self._entries.move_to_end(name)
            return drawn

    def keep(self, specification: str, drawn: Drawn, until_s: float = math.inf) -> None:
        """Keeps what came of a specification; what was asked for longest ago makes place."""
        name, size = _name(specification), drawn.size_bytes
        with self._lock:
            self.size_bytes += size - self._entries.pop(name, (drawn, 0, 0.0))[1]
            self._entries[name] = (drawn, size, until_s)
            while self.size_bytes > self._most_bytes:
                self.size_bytes -= self._entries.popitem(last=False)[1][1]


def _name(specification: str) -> bytes:
    return hashlib.blake2b(specification.encode(errors="replace"), digest_size=16).digest()
