"""A report frame and the verdicts in, the rows of the segment table out: worst verdict first, then by requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboards import theme, unjudged
from dashboards.choice import KEYS, Choice, details
from dashboards.unjudged import Why
from pipeline.metrics import Metric, by_name
from pipeline.segments import canonical

LEVER = "speculation"
SHOWN_ROWS = 100
# One column of the table each: the metric, and the one that is shown beside it.
COLUMNS: tuple[tuple[str, str | None], ...] = (
    ("skipped_token_ratio", None),
    ("cache_hit_rate", None),
    ("draft_acceptance", "acceptance_length"),
    ("net_itl_s", "net_itl_gain"),
    ("interconnect_efficiency", None),
)
METRICS = tuple(name for pair in COLUMNS for name in pair if name)
Rows = Iterable[Mapping[str, Any]]
BySegment = Mapping[str, Mapping[str, Any]]
_URGENT = ("disable", "conflicted", "frozen")


@dataclass(frozen=True)
class Cell:
    """One metric of one segment: the stored value, its words, and how it was got. Value None is not available."""

    metric: Metric
    value: float | None
    text: str
    n: int
    coverage: float | None
    provenance: str
    basis: str = ""
    beside: Cell | None = None

    @property
    def how(self) -> list[str]:
        """n with coverage, then provenance."""
        known = "" if self.coverage is None else f" · {theme.percent(self.coverage)}"
        return [f"n\N{NO-BREAK SPACE}{theme.count(self.n)}{known}", self.provenance.replace("+", " + ")]


@dataclass(frozen=True)
class Gain:
    """The newest effect on net ITL: the gain against control, its interval in words."""

    value: float
    text: str
    interval: str
    css: str


@dataclass(frozen=True)
class Verdict:
    """A lever's verdict on a segment, in words; `lacks` says in a few what keeps it from being judged."""

    name: str
    words: str
    mark: str
    css: str
    reason: str
    state: str
    since: str
    action: str
    lacks: str = ""
    is_off_recommended: bool = False
    is_shadow: bool = False


@dataclass(frozen=True)
class Row:
    """One judging segment."""

    keys: dict[str, str | None]
    requests: int
    cells: list[Cell]
    verdict: Verdict
    gain: Gain | None
    url: str

    @property
    def name(self) -> str:
        """The model."""
        return self.keys.get("model") or "model unknown"

    @property
    def details(self) -> list[str]:
        """The other keys that are known, in words."""
        return details(self.keys)


def rows(report: Rows, verdicts: Rows, effects: Rows, whys: Mapping[str, Why], chosen: Choice, now: datetime) -> list[Row]:
    """The table's rows; `whys` is asked where there is no verdict."""
    said = {segment: _verdict(row, now) for segment, row in _worst(verdicts).items()}
    newest = {row["segment"]: row for row in effects}
    found = [_row(row, said, whys, newest, chosen) for row in report]
    found.sort(key=lambda row: (_urgency(row.verdict.name), -row.requests))
    return found


def _worst(verdicts: Rows) -> BySegment:
    """Each segment's verdict; of several policies the worst, of those in shadow only where there is no other."""
    order = list(theme.VERDICTS)
    found: dict[str, Mapping[str, Any]] = {}
    for verdict in sorted(verdicts, key=lambda row: (bool(row.get("is_shadow")), order.index(row["verdict"])), reverse=True):
        found[verdict["segment"]] = verdict
    return found


def _urgency(verdict: str) -> int:
    return _URGENT.index(verdict) if verdict in _URGENT else len(_URGENT)


def _row(row: Mapping[str, Any], said: Mapping[str, Verdict], whys: Mapping[str, Why], newest: BySegment, chosen: Choice) -> Row:
    keys = {key: row[key] for key in KEYS}
    segment = canonical(keys)
    cells = [_pair(row, *pair) for pair in COLUMNS]
    verdict = said.get(segment) or _not_judged(whys.get(segment, unjudged.UNKNOWN))
    return Row(keys, row["requests"], cells, verdict, _gain(newest.get(segment)), chosen.url(keys))


def _gain(row: Mapping[str, Any] | None) -> Gain | None:
    if row is None or row["gain"] is None:
        return None
    low, high = row["gain_low"], row["gain_high"]
    if low is None or high is None:
        return Gain(row["gain"], theme.signed_percent(row["gain"]), "", "quiet")
    css = "good" if low > 0 else "bad" if high < 0 else "quiet"
    return Gain(row["gain"], theme.signed_percent(row["gain"]), f"{theme.signed_percent(low)} to {theme.signed_percent(high)}", css)


def _pair(row: Mapping[str, Any], name: str, beside: str | None) -> Cell:
    return _cell(row, name, None if beside is None else _cell(row, beside))


def _cell(row: Mapping[str, Any], name: str, beside: Cell | None = None) -> Cell:
    metric, value = by_name()[name], row[name]
    text = theme.signed_percent(value) if name == "net_itl_gain" and value is not None else theme.shown(value, metric.unit)
    basis = (row.get("net_itl_basis") or "") if name == "net_itl_s" else ""
    return Cell(metric, value, text, row[f"{name}_n"] or 0, row[f"{name}_coverage"], row[f"{name}_provenance"] or "", basis, beside)


def _not_judged(why: Why) -> Verdict:
    return Verdict("", *theme.NOT_JUDGED, reason=why.text, state="", since="", action="", lacks=why.short)


def _verdict(row: Mapping[str, Any], now: datetime) -> Verdict:
    words, mark, css = theme.badge(row["verdict"], row["reason_code"])
    since, state, action = theme.clock(row["state_since"], now), row["state"].replace("_", " "), row["action"].replace("_", " ")
    is_off, is_shadow = row["state"] == "off_recommended", bool(row.get("is_shadow"))
    if is_shadow:
        words, css = f"{words}, in shadow", "quiet"
    return Verdict(row["verdict"], words, mark, css, row["reason"], state, since, action, words, is_off, is_shadow)
