"""Whether sendings went through in, one line in the log for each outage out; how many failed is counted."""

from __future__ import annotations

import logging
import threading
from collections import Counter

log = logging.getLogger("leverwatch")
LIBRARY = "opentelemetry"


class LastWords(logging.Handler):
    """Keeps what the library last complained of, which it says once a try, out of the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps it."""
        self.said = record.getMessage()

    def listen(self) -> None:
        """Takes the place of all others that would print what the library says."""
        library = logging.getLogger(LIBRARY)
        library.handlers = [one for one in library.handlers if not isinstance(one, LastWords)] + [self]
        library.propagate = False


class Outage:
    """How an endpoint stands. Safe from any thread."""

    def __init__(self, endpoint: str, words: LastWords) -> None:
        self._endpoint, self._words = endpoint, words
        self._is_out = False
        self._lock = threading.Lock()
        self.failed: Counter[str] = Counter()

    def note(self, signal: str, *, is_sent: bool) -> None:
        """Takes note of one sending of traces or metrics; an outage is said once, and its end."""
        with self._lock:
            self.failed[signal] += not is_sent
            was_out, self._is_out = self._is_out, not is_sent
        if was_out == self._is_out:
            return
        if is_sent:
            log.warning("%s takes spans and metrics again; %d sendings failed so far", self._endpoint, self.failed.total())
        else:
            said = self._words.said or "no answer"
            log.warning("%s takes no %s: %s; they are dropped until it does, and nothing waits for it", self._endpoint, signal, said)
