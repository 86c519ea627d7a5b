"""Reports and effects of one segment in, its table of metrics out: both arms, the gain now with its interval, and all requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from dashboards import standing, theme
from dashboards.standing import Gain
from pipeline.metrics import Metric, by_name

# The metrics of the table in their order; those in cells are reported over the period, the others are known of effects alone.
SHOWN = (
    "net_itl_s",
    "draft_acceptance",
    "acceptance_length",
    "skipped_token_ratio",
    "cache_hit_rate",
    "interconnect_efficiency",
    "ttft_s",
    "tpot_s",
    "e2e_s",
    "error_rate",
    "gpu_s_per_output_token",
)
JUDGED_ALONE = "net_itl_s"
METRICS = tuple(name for name in SHOWN if name != JUDGED_ALONE)
COST = "cost_per_million_output_tokens_usd"
_TAGS = ("p50", "p95", "p99")


@dataclass(frozen=True)
class Value:
    """A metric of a set of requests: the stored value, its words, its percentiles, and what stands behind it. None is no data."""

    value: float | None
    text: str
    tails: list[tuple[str, float, str]]
    n: int
    coverage: float | None
    provenance: str

    @property
    def how(self) -> str:
        """n, coverage and provenance in words."""
        known = "" if self.coverage is None else f" · {theme.percent(self.coverage)}"
        told = f" · {self.provenance}" if self.provenance not in ("", "cells") else ""
        return f"n\N{NO-BREAK SPACE}{theme.count(self.n)}{known}{told}".replace("+", " + ")


@dataclass(frozen=True)
class Line:
    """One metric of the segment: of all requests and of both arms over the period, and the newest comparison over a window of its own."""

    metric: Metric
    everything: Value | None
    treated: Value | None
    control: Value | None
    gain: Gain | None
    why: str
    window: str = ""
    levels: str = ""

    @property
    def is_known(self) -> bool:
        """Whether any requests had what it needs."""
        return any(value is not None and value.value is not None for value in (self.everything, self.treated, self.control))


def lines(
    everything: pl.DataFrame, arms: Mapping[str, Mapping[str, Any]], effects: Mapping[str, Mapping[str, Any]], now: datetime
) -> list[Line]:
    """A line per metric. `everything` is one report row or none, `arms` one per arm, `effects` the newest by metric."""
    whole = everything.row(0, named=True) if len(everything) else None
    return [_line(name, whole, arms, effects.get(name), now) for name in SHOWN]


def priced(line: Line, usd_per_gpu_hour: float) -> Line:
    """The cost of a million output tokens, of GPU seconds per token at one price; a gain in the one is a gain in the other."""
    factor = usd_per_gpu_hour / 3600 * 1e6
    metric = by_name()[COST]

    def cost(value: Value | None) -> Value | None:
        if value is None or value.value is None:
            return value
        return Value(value.value * factor, theme.shown(value.value * factor, metric.unit), [], value.n, value.coverage, value.provenance)

    return Line(metric, cost(line.everything), cost(line.treated), cost(line.control), line.gain, line.why, line.window)


def _line(
    name: str, whole: Mapping[str, Any] | None, arms: Mapping[str, Mapping[str, Any]], effect: Mapping[str, Any] | None, now: datetime
) -> Line:
    metric = by_name()[name]
    gain, window = (standing.gain(effect, now), standing.of_time(effect, now)) if effect else (None, "")
    why = "" if gain else (effect["note"] if effect is not None and effect["note"] else "not compared")
    if name == JUDGED_ALONE:
        treated, control = (_of_effect(effect, end, metric, window) if effect else None for end in ("a", "b"))
        return Line(metric, None, treated, control, gain, why, window)
    levels = (
        f"{theme.shown(effect['value_a'], metric.unit)} against {theme.shown(effect['value_b'], metric.unit)}" if gain and effect else ""
    )
    treated, control = (_value(arms.get(arm), metric) for arm in ("treated", "control"))
    return Line(metric, _value(whole, metric), treated, control, gain, why, window, levels)


def _of_effect(effect: Mapping[str, Any], end: str, metric: Metric, window: str) -> Value:
    value = effect[f"value_{end}"]
    return Value(value, theme.shown(value, metric.unit), [], effect[f"n_{end}"], effect["coverage"] if end == "a" else None, window)


def _value(row: Mapping[str, Any] | None, metric: Metric) -> Value | None:
    if row is None:
        return None
    name = metric.name
    tails = [(tag, row[f"{name}_{tag}"]) for tag in _TAGS if row.get(f"{name}_{tag}") is not None]
    value = row.get(name, dict(tails).get("p50"))
    shown = [(tag, tail, theme.shown(tail, metric.unit)) for tag, tail in tails]
    n, coverage, provenance = row[f"{name}_n"] or 0, row[f"{name}_coverage"], row[f"{name}_provenance"] or ""
    return Value(value, theme.shown(value, metric.unit), shown, n, coverage, provenance)
