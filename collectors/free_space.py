"""A folder in, whether its disk has room for what is acknowledged out."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.5  # at 200 MB/s of exports the bound is overrun by 100 MB at most


@dataclass(slots=True)
class FreeSpace:
    """The free space of a folder's disk against a bound in bytes; 0 is no bound."""

    folder: Path
    limit_free_bytes: int
    _looked_s: float = float("-inf")
    _free_bytes: int = 0

    def shortage(self) -> str | None:
        """Why nothing more can be taken; None while there is room."""
        if not self.limit_free_bytes:
            return None
        now_s = time.monotonic()
        if now_s - self._looked_s > LOOK_EVERY_S:
            self._free_bytes, self._looked_s = shutil.disk_usage(self.folder).free, now_s
        if self._free_bytes >= self.limit_free_bytes:
            return None
        return f"the disk of {self.folder} has {self._free_bytes:,} bytes free; exports are taken from {self.limit_free_bytes:,} on"
