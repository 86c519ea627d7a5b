"""Stored units in, what people read out: display units, words for ages and verdicts, colors, the charts' look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

# Colors are CSS custom properties, so that one drawing serves the light and the dark page: `assets/page.css` gives their values.
TREATED: Final = "var(--treated)"
CONTROL: Final = "var(--control)"
SECOND: Final = "var(--second)"
BAD: Final = "var(--bad)"
GOOD: Final = "var(--good)"
INK: Final = "var(--ink)"
MUTED: Final = "var(--muted)"
LINE: Final = "var(--line)"

# The light page's values of these, for what leaves the page.
LIGHT: Final[dict[str, str]] = {
    "card": "#ffffff",
    "ink": "#17212b",
    "muted": "#566370",
    "line": "#dde3e9",
    "treated": "#1f6feb",
    "control": "#b85c00",
    "second": "#8250df",
    "bad": "#c4231b",
    "good": "#15753a",
    "warn": "#8a5a00",
}

CHART_WIDTH_PX: Final = 400
CHART_HEIGHT_PX: Final = 168

DUST: Final = 1e-9
_SPACE: Final = "\N{NO-BREAK SPACE}"  # between a number and its unit
_AXIS: Final[dict[str, Any]] = {
    "labelColor": MUTED,
    "titleColor": MUTED,
    "gridColor": LINE,
    "domain": False,
    "tickColor": LINE,
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
    "labelPadding": 6,
}
CONFIG: Final[dict[str, Any]] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    "view": {"stroke": None},
    "aria": False,
    "axis": _AXIS,
    "axisX": {"grid": False, "labelOverlap": True, "labelSeparation": 10, "tickCount": 6},
    "axisY": {"tickCount": 4, "ticks": False},
    "legend": {
        "labelColor": INK,
        "labelFontSize": 12,
        "orient": "top",
        "title": None,
        "symbolStrokeWidth": 3,
        "symbolSize": 120,
        "offset": 4,
    },
    "line": {"strokeWidth": 2.2},
    "text": {"color": MUTED, "fontSize": 12},
}

# How a verdict is said at a glance: its words, its mark (color never stands alone), its CSS class; the worst first.
VERDICTS: Final[dict[str, tuple[str, str, str]]] = {
    "disable": ("stopped paying", "▼", "bad"),
    "conflicted": ("conflicting", "◆", "warn"),
    "frozen": ("on hold", "■", "warn"),
    "insufficient": ("too little data", "○", "quiet"),
    "keep": ("pays", "▲", "good"),
}
# Where the reason says more than the verdict: by verdict and reason code.
_REASONS: Final[dict[tuple[str, str], tuple[str, str, str]]] = {
    ("insufficient", "no_control"): ("no control arm", "○", "quiet"),
    ("insufficient", "fixed_control"): ("control is fixed", "○", "warn"),
    ("frozen", "suspicious_input"): ("suspicious input", "■", "warn"),
    ("frozen", "sample_ratio"): ("arms split wrong", "■", "warn"),
    ("keep", "no_harm"): ("no loss seen", "▲", "good"),
}


def badge(verdict: str, reason_code: str) -> tuple[str, str, str]:
    """A verdict's words, mark and CSS class."""
    return _REASONS.get((verdict, reason_code)) or VERDICTS[verdict]


def shown(value: float | None, unit: str) -> str:
    """A stored value in display units: seconds as ms, ratios as %, bytes per second as GB/s; three digits."""
    if value is None:
        return "no data"
    if unit in ("s", "s/token"):
        per = "/token" if unit == "s/token" else ""
        return f"{_digits(value * 1000)}{_SPACE}ms{per}" if abs(value) < 1 else f"{_digits(value)}{_SPACE}s{per}"
    if unit == "ratio":
        return percent(value)
    if unit == "bytes/s":
        return f"{_digits(value / 1e9)}{_SPACE}GB/s"
    return f"{_digits(value)}{_SPACE}{unit}".strip()


def percent(ratio: float) -> str:
    """`0.153` as `15.3 %`; whole percents from 20 on; what is left of sums that should be 0 is 0."""
    ratio = 0.0 if abs(ratio) < DUST else ratio
    return f"{_minus(f'{100 * ratio:.0f}' if abs(ratio) >= 0.2 else f'{100 * ratio:.3g}')}{_SPACE}%"


def signed_percent(ratio: float) -> str:
    """A gain: `-0.15` as `−15 %`, `0.2` as `+20 %`."""
    return f"{_minus(f'{100 * ratio:+.0f}' if abs(ratio) >= 0.1 else f'{100 * ratio:+.1f}')}{_SPACE}%"


def count(number: int | None) -> str:
    """`12345` as `12,345`."""
    return "0" if number is None else f"{number:,}"


def size(number_bytes: float) -> str:
    """Bytes for reading: `512 B`, `23.5 MB`, `1.2 GB`."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(number_bytes) >= factor:
            return f"{_digits(number_bytes / factor)}{_SPACE}{unit}"
    return f"{number_bytes:.0f}{_SPACE}B"


def upfirst(text: str) -> str:
    """A text with a capital at its beginning, and the rest as it is."""
    return text[:1].upper() + text[1:]


def age(seconds: float) -> str:
    """A length of time in words: `3 s`, `5 min`, `2 h 10 min`, `3 days`."""
    whole = max(0, round(seconds))
    if whole < 90:
        return f"{whole} s"
    if whole < 5400:
        return f"{round(whole / 60)} min"
    if whole < 172_800:
        hours, minutes = divmod(round(whole / 60), 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{round(whole / 86_400)} days"


def clock(moment: datetime, now: datetime) -> str:
    """A time in UTC: the hour and minute on the same day, else with the date."""
    told = moment.astimezone(UTC)
    return told.strftime("%H:%M UTC") if told.date() == now.astimezone(UTC).date() else told.strftime("%Y-%m-%d %H:%M UTC")


def between(since: datetime, until: datetime, now: datetime) -> str:
    """A period in UTC: both ends with the date, or neither where all of it is of today."""
    seen = now if since.astimezone(UTC).date() == now.astimezone(UTC).date() else since - timedelta(days=1)
    start, end = clock(since, seen), clock(until, seen)
    same_day = since.astimezone(UTC).date() == until.astimezone(UTC).date()
    return f"{start.removesuffix(' UTC')} to {end[-len('00:00 UTC') :] if same_day else end}"


def _digits(value: float) -> str:
    return _minus(f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}")


def _minus(text: str) -> str:
    return text.replace("-", "−")
