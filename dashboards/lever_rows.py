"""A lever's newest effects and where its streams stand in, a row per segment out, the worst first, and their gains as a figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from dashboards import row_charts, standing, theme
from dashboards.choice import Choice, title
from dashboards.figure import Figure, Sql
from dashboards.standing import Gain, Verdict
from pipeline.metrics import Metric, judged
from queries import files

SHOWN_ROWS = 50
MAY_NOT_DECIDE = ("refused", "unseen", "widened_null")
BLOCK = timedelta(minutes=5)
PAYS = ("keep", "disable", "conflicted")


@dataclass(frozen=True)
class Row:
    """A lever in one segment: its verdict, the effect on a metric, what the evidence says, and what is lacking for a better answer."""

    segment: str
    keys: dict[str, str]
    verdict: Verdict | None
    is_shadow: bool
    gain: Gain | None
    levels: str
    counted: str
    evidence: str
    lacks: str
    effect: Mapping[str, Any] | None
    segment_url: str
    compare_url: str

    @property
    def title(self) -> str:
        """The segment in a line."""
        return title(self.keys)

    @property
    def css(self) -> str:
        """How urgent it is."""
        return "quiet" if self.verdict is None or self.is_shadow else "bad" if self.verdict.is_off_recommended else self.verdict.css


def rows(effects: pl.DataFrame, streams: pl.DataFrame, metric: str, chosen: Choice, now: datetime, margin: float | None) -> list[Row]:
    """The segments of a lever, the worst first: recommended off, then by what a metric gains, then those without a gain."""
    told = effects.filter((pl.col("metric") == metric) & (pl.col("arm_a") == "treated")) if len(effects) else effects
    of_segment = {row["segment"]: row for row in told.iter_rows(named=True)}
    ranked = streams.with_columns(standing.urgency()).sort("shadow", "urgency", "policy")
    stands: dict[str, Mapping[str, Any]] = {}
    for stream in ranked.iter_rows(named=True):
        stands.setdefault(stream["segment"], stream)
    segments = [one for one in {**stands, **of_segment} if _fits(json.loads(one), chosen.keys)]
    listed = [_row(one, of_segment.get(one), stands.get(one), chosen, now, margin) for one in segments]
    return sorted(listed, key=lambda row: (row.css != "bad", row.gain is None, row.gain.value if row.gain else 0.0, row.segment))


def _fits(keys: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a segment is among the chosen ones; a key that its lever is not judged by stands for any value."""
    return all(keys.get(key, value if key == "topology" else "") == value for key, value in wanted.items())


def _row(
    segment: str, effect: Mapping[str, Any] | None, stream: Mapping[str, Any] | None, chosen: Choice, now: datetime, margin: float | None
) -> Row:
    keys = json.loads(segment)
    verdict = standing.verdict(stream, now) if stream else None
    unit = judged()[effect["metric"]].unit if effect else ""
    levels = f"{theme.shown(effect['value_a'], unit)} against {theme.shown(effect['value_b'], unit)}" if effect else ""
    counted = f"n {theme.count(effect['n_a'])} treated, {theme.count(effect['n_b'])} control; {effect['blocks']} blocks" if effect else ""
    return Row(
        segment,
        keys,
        verdict,
        bool(stream and stream["shadow"]),
        standing.gain(effect, now) if effect and _is_against(effect) else None,
        levels,
        counted,
        _evidence(effect, verdict, now, margin),
        _lacks(effect, stream),
        effect,
        chosen.url("segment", keys=keys),
        chosen.url("compare", keys=keys, metric=None),
    )


def _is_against(effect: Mapping[str, Any]) -> bool:
    """Whether a gain is against a control arm, or a drawn schedule in its place."""
    return bool(effect["basis"] == "control" or (effect["basis"] == "switchback" and effect.get("grade") == "good"))


def _evidence(effect: Mapping[str, Any] | None, verdict: Verdict | None, now: datetime, margin: float | None) -> str:
    """What all looks together make evident, and since when; `past 2 %` is what the policy asks for."""
    past = f" past {theme.percent(margin)}" if margin else ""
    if verdict and verdict.is_off_recommended:
        return f"loss{past} evident, recommended off since {verdict.since}"
    if effect is None:
        return ""
    turned = f"; may be worse since {theme.clock(effect['turned_at'], now)}" if effect.get("turned_at") else ""
    if effect.get("believed") == "harm":
        return f"loss evident{turned}"
    if effect.get("believed") == "gain":
        return f"gain evident{turned}"
    side = {"good": "interval above 0, evidence still gathers", "bad": "interval below 0, evidence still gathers"}
    return side.get(row_charts.css(effect["gain_low"], effect["gain_high"]), "not evident either way") + turned


def _lacks(effect: Mapping[str, Any] | None, stream: Mapping[str, Any] | None) -> str:
    """What keeps this segment from a (better) answer; empty where nothing does."""
    refused = effect is not None and effect.get("permission") in MAY_NOT_DECIDE
    said = [effect["note"], effect["permission_reason"] if refused else None] if effect else ["no effect on this metric yet"]
    if stream and stream["verdict"] not in PAYS:
        said.insert(0, stream["reason"])
    return "; ".join(dict.fromkeys(text for text in said if text))


def figure(listed: Sequence[Row], lever: str, metric: Metric) -> Figure:
    """The gain of each segment with its interval, the worst first."""
    words = f"{metric.title}: gain against control, by segment, %"
    known = [row for row in listed if row.gain is not None and row.effect is not None]
    if not known:
        why = next((row.lacks for row in listed if row.lacks), "no effect of this lever is known yet")
        return Figure("effects", words, f"No data: {why}.")
    told = [_drawn(row) for row in known]
    note = "Above 0 the lever helps. Line: 95 % interval that holds at any look. Newest closed blocks of each segment."
    note += f" The {row_charts.MOST_ROWS} worst of {len(known)} are drawn." if len(known) > row_charts.MOST_ROWS else ""
    numbers = [[row.title, row.gain.text, row.gain.interval, row.counted] for row in known if row.gain]
    effects = [row.effect for row in known if row.effect]
    names = ("segment", "metric", "value_a", "value_b", "gain", "gain_low", "gain_high", "n_a", "n_b", "blocks", "coverage", "until")
    values = pl.DataFrame([{name: one[name] for name in names} for one in effects], infer_schema_length=None)
    ends = [one["until"] for one in effects]
    asked = {"lever": lever, "metric": metric.name, "since": min(ends) - BLOCK, "until": max(ends)}
    n = sum(one["n_a"] + one["n_b"] for one in effects)
    coverage = sum(one["coverage"] * (one["n_a"] + one["n_b"]) for one in effects) / n if n else None
    label = f"{words}: " + "; ".join(f"{row.title} {row.gain.text}" for row in known[:5] if row.gain)
    return Figure(
        "effects",
        words,
        note,
        label,
        row_charts.whiskers(told, "gain, %"),
        ["segment", "gain", "95 % interval", "counted"],
        numbers,
        Sql(files.question("page_lever_effects"), asked),
        n,
        coverage,
        max(ends),
        metric,
        values,
    )


def _drawn(row: Row) -> row_charts.Row:
    effect = row.effect or {}
    low, high = effect.get("gain_low"), effect.get("gain_high")
    return row_charts.Row(row.title, effect.get("gain"), low, high, row_charts.css(low, high))


def keys_of(segment: str) -> dict[str, str]:
    """The keys of a segment's canonical text."""
    keys: dict[str, str] = json.loads(segment)
    return keys
