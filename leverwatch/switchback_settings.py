"""`[switchback]` of the configuration and the loaded policies in; what levers without a control arm are held against out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from alerts.chain import Policy, PremiseLost
from leverwatch.described import says
from pipeline import schedule_file
from pipeline.premise_evidence import Watched
from pipeline.schedule_rows import Period, ScheduleError

log = logging.getLogger("leverwatch")


class Switchback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A schedule that switches levers on and off, where no control arm runs beside them."""

    file: Annotated[str, says("CSV as `leverwatch switchback plan` writes it; read again when it changes")] = ""


class ScheduleFile:
    """A schedule that is read again when its file changes. A broken new version is said, and the old one stays in force."""

    def __init__(self, path: Path | None) -> None:
        """Reads the file; None is a schedule without periods.

        Raises:
            ScheduleError: it cannot be read, or a line of it cannot be used.
        """
        self._path, self.problem = path, ""
        self._seen = self._stamp()
        self._periods = schedule_file.read(path) if path else ()

    def current(self) -> tuple[Period, ...]:
        """The newest version that can be used."""
        stamp = self._stamp()
        if self._path and stamp != self._seen:
            self._seen = stamp
            try:
                self._periods, self.problem = schedule_file.read(self._path), ""
                log.info("%s was read again", self._path)
            except ScheduleError as error:
                self.problem = f"{error}; the version before stays in force"
                log.warning("%s", self.problem)
        return self._periods

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat() if self._path else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None


def watched(policies: Sequence[Policy]) -> tuple[Watched, ...]:
    """The premises that policies name: where each is lost, and where it is good again."""
    found: dict[Watched, None] = {}
    for policy in policies:
        for trigger in policy.disable_when:
            if isinstance(trigger, PremiseLost):
                above = trigger.is_ == "above"
                ends = ((trigger.threshold, above), (trigger.re_enable_at, not above))
                found |= {Watched(policy.lever, trigger.metric, end, side): None for end, side in ends if end is not None and end > 0}
    return tuple(found)
