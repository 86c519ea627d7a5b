"""How large the numbers of a policy may be, and what its texts may hold: annotated types for its structs, a metric's range out.

A number without bounds is a typing slip that is judged by: -15 for -15 %, minutes for seconds, more blocks than a window has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from pipeline.metrics import Metric

WINDOW_BLOCKS, DAY_BLOCKS = 24, 288  # of 300 s: what an effect is measured over, and the longest that a condition waits
DAY_S, WEEK_S = 86_400.0, 604_800.0
LEAST_FACTOR, MOST_FACTOR = 0.1, 10.0

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_LINES = rf"\A[^{_CONTROLS}]*\Z"
_LINE = rf"\A[^\t\n{_CONTROLS}]*\Z"
_NAME = rf"\A(?!\s)[^\t\n{_CONTROLS}]*(?<!\s)\Z"

Name = Annotated[
    str, Meta(min_length=1, max_length=100, pattern=_NAME, description="one line of text that neither begins nor ends with a blank")
]
Line = Annotated[str, Meta(min_length=1, max_length=500, pattern=_LINE, description="one line of text")]
Said = Annotated[str, Meta(min_length=1, max_length=2_000, pattern=_LINES, description="text without control characters")]
Remark = Annotated[str, Meta(max_length=2_000, pattern=_LINES, description="text without control characters")]
Version = Name | Annotated[int, Meta(ge=0, le=1_000_000_000)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
HeldBlocks = Annotated[int, Meta(ge=1, le=DAY_BLOCKS)]
JudgedBlocks = Annotated[int, Meta(ge=1, le=WINDOW_BLOCKS)]
Requests = Annotated[int, Meta(ge=1, le=1_000_000)]
Repeats = Annotated[int, Meta(ge=5, le=1_000)]
Days = Annotated[float, Meta(gt=0.0, le=366.0)]
Dwell = Annotated[float, Meta(ge=3_600.0, le=WEEK_S)]
Stale = Annotated[float, Meta(ge=600.0, le=WEEK_S)]  # under two blocks' time a stream would be stale between its blocks
Expiry = Annotated[float, Meta(ge=3_600.0, le=30 * DAY_S)]

_UNITS: Mapping[str, tuple[float, float]] = {
    "ratio": (0.0, 100.0),
    "s": (0.0, DAY_S),
    "s/token": (0.0, 600.0),
    "tokens/step": (0.0, 1_000.0),
    "tokens": (0.0, 1e8),
    "requests": (0.0, 1e6),
    "1/1k requests": (0.0, 1e5),
}
"""What a value of a unit may be where its metric states no end; beyond it lies another unit, not another fleet."""
_GAIN = (-1.0, 1.0)  # a gain of -1 is twice the time


def metric_range(metric: Metric) -> tuple[float, float]:
    """Between which values a threshold on a metric has to lie, in the metric's unit."""
    low, high = _GAIN if metric.name.endswith("_gain") else _UNITS.get(metric.unit, (-1e15, 1e15))
    return (low if metric.bounds[0] is None else metric.bounds[0], high if metric.bounds[1] is None else metric.bounds[1])


def told(metric: Metric, value: float) -> str | None:
    """Why a value can be no threshold on a metric; None where it can."""
    low, high = metric_range(metric)
    if low <= value <= high:
        return None
    percent = f"; {value:g} % is {value / 100:g}" if metric.unit == "ratio" and abs(value) >= 1 and low <= value / 100 <= high else ""
    return f"{value:g} is out of bounds: {metric.name} takes {low:g} to {high:g} ({metric.unit}){percent}"
