"""Items acknowledged and loaded in, how many wait between the two out: what the ledger shows as pending."""

from __future__ import annotations

import threading
from collections import Counter


class Waiting:
    """Items that are durable in the spool and not in the store yet, by sender and signal. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: Counter[tuple[str, str]] = Counter()

    def add(self, sender: str, signal: str, items: int) -> None:
        """Counts items that were acknowledged; with a negative number items that were loaded, which may be told first."""
        with self._lock:
            self._items[sender, signal] += items
            if not self._items[sender, signal]:
                del self._items[sender, signal]

    def counts(self) -> dict[tuple[str, str], int]:
        """How many items wait, by (sender, signal)."""
        with self._lock:
            return {key: count for key, count in self._items.items() if count > 0}
