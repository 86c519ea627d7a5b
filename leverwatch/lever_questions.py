"""What is asked of a lever where nothing else is said, and ages in words as hours."""

from __future__ import annotations

import re

from queries.report import AGES_S, ReportError

CHANGE = 0.05
WITHIN_HOURS = 24.0
METRIC = "tpot_s"
METRICS = ("tpot_s", "ttft_s", "e2e_s", "error_rate")
GAIN_ON = 0.05
"""What a gain must exceed for a lever to get more traffic: as much above 0, where it is disabled, so that it does not flap."""


def hours(age: str) -> float:
    """The hours of an age such as `90m`, `24h` or `7d`.

    Raises:
        ReportError: it is none.
    """
    found = re.fullmatch(r"(\d+)([smhd])", age.strip())
    if not found:
        msg = f"age {age[:40]!r}: a whole number and s, m, h or d are taken, such as 90m, 24h or 7d"
        raise ReportError(msg)
    return int(found[1]) * AGES_S[found[2]] / 3600
