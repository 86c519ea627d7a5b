"""Specifications with their rows in, drawings out: made by two child processes at most, pages first, and kept while they fit in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dashboards.easel import DrawingError, Easel, EaselLimits
from dashboards.kept_drawings import Drawn, KeptDrawings

SOON_S = 1  # a figure takes a twentieth of it


class CrowdedError(RuntimeError):
    """As many figures as are taken are on their way; `retry_after_s` says when to ask again."""

    def __init__(self, message: str, retry_after_s: int = SOON_S) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class StudioLimits:
    """What drawing may take.

    `easels` are processes, `page_s` is what a page waits for all of its figures, or a download for its one, `downloads` how many are taken
    at once, `kept_bytes` what drawings are kept. What could not be drawn is not tried again for `failed_s`.
    """

    easels: int = 2
    page_s: float = 10.0
    downloads: int = 8
    kept_bytes: int = 16 << 20
    failed_s: float = 60.0
    easel: EaselLimits = field(default_factory=EaselLimits)


class Studio:
    """Draws for the pages of one server. Thread-safe; nothing runs before the first drawing, `close` ends what does."""

    def __init__(self, limits: StudioLimits | None = None) -> None:
        self.limits = limits or StudioLimits()
        self.easels = [Easel(self.limits.easel) for _ in range(self.limits.easels)]
        self.kept = KeptDrawings(self.limits.kept_bytes)
        self._free = list(reversed(self.easels))  # the last one is taken: the second process begins when the first one is busy
        self._changed = threading.Condition()
        self._pages_waiting = 0
        self._places = threading.BoundedSemaphore(self.limits.downloads)

    def page(self, specifications: Sequence[str]) -> list[Drawn]:
        """The drawings of a page in their order; one that takes too long, or cannot be, says so in its place and costs no other its own."""
        until_s = time.monotonic() + self.limits.page_s
        found = {one: self.kept.find(one, time.monotonic()) for one in specifications}
        missing = [one for one, drawn in found.items() if drawn is None]
        drawn = self._page(missing, until_s) if missing else {}
        return [found[one] or drawn[one] for one in specifications]

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place for a figure that is taken away as a file, for as long as the block runs. Raises CrowdedError where all are taken."""
        if not self._places.acquire(blocking=False):
            msg = f"{self.limits.downloads} figures are on their way already"
            raise CrowdedError(msg)
        try:
            yield
        finally:
            self._places.release()

    def svg(self, specification: str) -> str:
        """One drawing, to be taken away; pages come before it. Raises DrawingError, CrowdedError."""
        until_s = time.monotonic() + self.limits.page_s
        drawn = self.kept.find(specification, time.monotonic())
        if drawn is None:
            with self._easel(until_s, is_page=False) as easel:
                drawn = self._drawn(easel, specification, until_s)
        if drawn.svg is None:
            raise DrawingError(drawn.why)
        return drawn.svg

    def png(self, svg: str) -> bytes:
        """The picture of a drawing, to be taken away. Raises DrawingError, CrowdedError."""
        with self._easel(time.monotonic() + self.limits.page_s, is_page=False) as easel:
            return easel.png(svg)

    def close(self) -> None:
        """Ends the processes; what they draw is not finished, and nothing is drawn any more."""
        with self._changed:
            for easel in self.easels:
                easel.stop()
            for easel in self._free:
                easel.close()

    def _page(self, missing: Sequence[str], until_s: float) -> dict[str, Drawn]:
        """All that is missing of a page, by one process."""
        try:
            with self._easel(until_s, is_page=True) as easel:
                return {one: self._drawn(easel, one, until_s) for one in missing}
        except CrowdedError as error:
            return dict.fromkeys(missing, Drawn(None, str(error)))

    def _drawn(self, easel: Easel, specification: str, until_s: float) -> Drawn:
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return Drawn(None, f"what was drawn before it took the {self.limits.page_s:g} s that a page may take")
        try:
            drawn, again_s = Drawn(easel.svg(specification, left_s)), float("inf")
        except DrawingError as error:
            drawn, again_s = Drawn(None, str(error)), time.monotonic() + self.limits.failed_s
        self.kept.keep(specification, drawn, again_s)
        return drawn

    @contextmanager
    def _easel(self, until_s: float, *, is_page: bool) -> Iterator[Easel]:
        """A process that nobody else draws with; a download gets none while a page waits. Raises CrowdedError."""
        easel = self._taken(until_s, is_page=is_page)
        try:
            yield easel
        finally:
            with self._changed:
                self._free.append(easel)
                self._changed.notify_all()

    def _taken(self, until_s: float, *, is_page: bool) -> Easel:
        with self._changed:
            self._pages_waiting += is_page
            left_s = max(0.0, until_s - time.monotonic())
            is_there = self._changed.wait_for(lambda: bool(self._free) and (is_page or not self._pages_waiting), left_s)
            self._pages_waiting -= is_page
            self._changed.notify_all()
            if not is_there:
                msg = f"the processes that draw are busy; none became free within {self.limits.page_s:g} s"
                raise CrowdedError(msg)
            return self._free.pop()
