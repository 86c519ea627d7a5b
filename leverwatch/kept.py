"""A slow question in, its newest answer out: made anew behind the back of those who ask."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

Answer = TypeVar("Answer")
FRESH = timedelta(seconds=15)
STALE = timedelta(minutes=1)  # older than this it is no answer: who asks then waits for a new one


@dataclass
class Kept(Generic[Answer]):
    """The answer to one question. One that is no longer fresh is given once more while a thread makes the next."""

    ask: Callable[[], Answer]
    clock: Callable[[], datetime]
    _held: tuple[datetime, Answer] | None = None
    _making: threading.Lock = field(default_factory=threading.Lock)

    def answer(self) -> tuple[datetime, Answer]:
        """When it was asked, and the answer. Raises what the question raises where there is none to give."""
        held, now = self._held, self.clock()
        if held is None or now - held[0] > STALE:
            with self._making:
                return self._made() if self._held is held or self._held is None else self._held
        if now - held[0] > FRESH and self._making.acquire(blocking=False):
            threading.Thread(target=self._renew, name="renew", daemon=True).start()
        return held

    def _made(self) -> tuple[datetime, Answer]:
        made = self.clock(), self.ask()
        self._held = made
        return made

    def _renew(self) -> None:
        try:
            self._made()
        finally:
            self._making.release()
