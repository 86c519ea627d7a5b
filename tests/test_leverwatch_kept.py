"""An answer that is kept: given while it is fresh, once more while the next is made, and not at all when it is old."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from leverwatch.kept import FRESH, STALE, Kept

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Asking:
    """A question that counts how often it was asked, at a time that the test sets."""

    def __init__(self) -> None:
        self.now, self.times, self.again = START, 0, threading.Event()

    def ask(self) -> int:
        """How often it was asked, this time included."""
        self.times += 1
        if self.times > 1:
            self.again.set()
        return self.times


def test_a_fresh_answer_is_not_asked_again_and_an_older_one_is_given_while_the_next_is_made() -> None:
    asking = Asking()
    kept = Kept(asking.ask, lambda: asking.now)
    assert kept.answer() == (START, 1)
    asking.now = START + FRESH
    assert kept.answer() == (START, 1)
    asking.now = START + FRESH + timedelta(seconds=1)
    assert kept.answer() == (START, 1)
    assert asking.again.wait(10)
    assert asking.times == 2


def test_an_old_answer_is_waited_for() -> None:
    asking = Asking()
    kept = Kept(asking.ask, lambda: asking.now)
    kept.answer()
    asking.now = START + STALE + timedelta(seconds=1)
    assert kept.answer() == (asking.now, 2)
