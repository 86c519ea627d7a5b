"""The buckets and effects of one segment in, its figures out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from dashboards import charts, theme
from dashboards.charts import Mark, Period, Series
from dashboards.figure import Figure
from pipeline.metrics import by_name, judged

Bucket = Mapping[str, Any]
BLOCK = timedelta(minutes=5)
SHORT = timedelta(hours=48)
NO_REQUESTS = "No request of this segment began in this period."


@dataclass(frozen=True)
class _Shared:
    """What the charts of a page share: the period and a bucket's width, and what to say of the newest bucket."""

    period: Period
    width: timedelta
    lever: str = "speculation"
    newest: str = ""

    @property
    def arms(self) -> dict[str, tuple[str, str]]:
        """The names and colors of the arms."""
        return {"treated": (f"{self.lever.replace('_', ' ')} on", theme.TREATED), "control": ("control", theme.CONTROL)}

    @property
    def words(self) -> str:
        return theme.age(self.width.total_seconds())


def figures(
    buckets: Sequence[Bucket],
    effects: Sequence[Mapping[str, Any]],
    flips: Sequence[datetime],
    width: timedelta,
    within: Period,
    lever: str = "speculation",
    benefit: str = "net_itl_s",
    since: datetime | None = None,
) -> list[Figure]:
    """The charts of a segment: the gain in what its lever is for, then each metric over time.

    `effects` hold the gain, `benefit` names its metric; `since` is when it turned, where that is said.
    """
    whole = [row for row in buckets if within.since <= row["bucket"] and row["bucket"] + width <= within.until]
    shown = whole or buckets  # half a bucket looks like a fall in requests; where there is nothing else it is shown and said
    times = [*(row["bucket"] for row in shown), *(row["until"] for row in effects)]
    ends = [*(row["bucket"] + width for row in shown), *(row["until"] for row in effects)]
    period = Period(min(times), max(ends)) if times else within
    newest = "It is not complete yet." if not whole else "Buckets that the period cuts are left out." if whole != list(buckets) else ""
    shared = _Shared(period, width, lever, newest)
    gain = _gain(effects, [*_turned(since, period), *_flipped(flips, period)], shared, benefit)
    rest = [_skipped(shown, shared), _hits(shown, shared), _sent(shown, shared), _cost(shown, shared), _requests(shown, shared)]
    return [gain, _net_itl(shown, shared), *_drafts(shown, shared), _ttft(shown, shared), *rest]


def _net_itl(buckets: Sequence[Bucket], shared: _Shared) -> Figure:
    control = {row["bucket"]: row for row in buckets if row["arm"] == "control"}

    def value(row: Bucket) -> float | None:
        return net_itl_s(row, control.get(row["bucket"]))

    series = _by_arm(buckets, value, "timed_n", shared)
    return _lines("net-itl", "Net inter-token latency, ms/token", series, charts.MILLISECONDS_PER_TOKEN, shared, "net_itl_s")


def net_itl_s(row: Bucket, control: Bucket | None) -> float | None:
    """A bucket's net seconds per token: what the arm's later first tokens cost against control is spread over its tokens."""
    if not row["gaps"]:
        return None
    later_s = row["ttft_s"] - control["ttft_s"] if control and None not in (row["ttft_s"], control["ttft_s"]) else 0.0
    return float((row["decode_s"] + row["timed_n"] * max(0.0, later_s)) / row["gaps"])


def _flipped(flips: Sequence[datetime], period: Period) -> list[Mark]:
    return [Mark(at, f"flip {_said(at, period)}") for at in flips]


def _turned(since: datetime | None, period: Period) -> list[Mark]:
    """Since when the verdict's words say that it is worse."""
    inside = since is not None and period.since <= since <= period.until
    return [Mark(since, f"worse since {_said(since, period)}", is_decision=False)] if since is not None and inside else []


def _said(at: datetime, period: Period) -> str:
    """A moment on a chart: its time of day, in a long period its date."""
    return f"{at.astimezone(UTC):{'%H:%M' if period.until - period.since <= SHORT else '%b %d'}}"


def _gain(effects: Sequence[Mapping[str, Any]], turns: Sequence[Mark], shared: _Shared, benefit: str) -> Figure:
    metric = judged()[benefit]
    title = f"Gain in {metric.title[0].lower() + metric.title[1:]} against control, %"
    known = [row for row in effects if row["gain"] is not None]
    if not known:
        said = next((row["note"] for row in reversed(effects) if row["note"]), None)
        missing = f"no control arm: mark some replicas leverwatch.arm.{shared.lever} = control"
        return Figure("gain", title, f"No data: {said or missing}.".replace("<lever>", shared.lever), metric=metric)
    last = known[-1]
    note = (
        f"Above 0 the lever helps. Band: 95 % interval. Newest: {last['blocks']} blocks, "
        f"{theme.count(last['n_a'])} treated, {theme.count(last['n_b'])} control."
    )
    band = [(row["until"], row["gain"], row["gain_low"], row["gain_high"]) for row in known]
    step = max(BLOCK, shared.width) if _is_sparse(known) else BLOCK
    drawn = charts.interval("gain", title, band, turns, note, shared.period, step)
    return replace(drawn, n=last["n_a"] + last["n_b"], coverage=last.get("coverage"), metric=metric)


def _is_sparse(effects: Sequence[Mapping[str, Any]]) -> bool:
    """Whether not every block has one, as in a long period."""
    return len(effects) > 1 and min(b["until"] - a["until"] for a, b in pairwise(effects)) > BLOCK


def _ttft(buckets: Sequence[Bucket], shared: _Shared) -> Figure:
    treated = _merged(buckets, "treated")
    series = [
        Series("p50", theme.TREATED, _points(treated, lambda row: row["ttft_s_p50"], "ttft_n"), is_shared=True),
        Series("p95", theme.SECOND, _points(treated, lambda row: row["ttft_s_p95"], "ttft_n"), is_shared=True),
    ]
    title = "Time to first token, ms" + (f" ({shared.arms['treated'][0]})" if any(row["arm"] == "treated" for row in buckets) else "")
    return _lines("ttft", title, [line for line in series if line.points], charts.MILLISECONDS_FROM_ZERO, shared, "ttft_s")


def _drafts(buckets: Sequence[Bucket], shared: _Shared) -> list[Figure]:
    treated = _merged(buckets, "treated")
    rate = [
        Series("accepted", theme.TREATED, _points(treated, lambda row: _ratio(row["accepted_tokens"], row["draft_tokens"]), "drafted_n"))
    ]
    length = [Series("tokens/step", theme.TREATED, _points(treated, _length, "verified_n"))]
    return [
        _lines("acceptance", "Draft acceptance, %", rate, charts.PERCENT_FROM_ZERO, shared, "draft_acceptance"),
        _lines("length", "Acceptance length, tokens/step", length, charts.PLAIN_FROM_ONE, shared, "acceptance_length"),
    ]


def _skipped(buckets: Sequence[Bucket], shared: _Shared) -> Figure:
    series = _by_arm(buckets, lambda row: _ratio(row["cached_tokens"], row["prompt_tokens"]), "skipped_n", shared)
    return _lines("skipped", "Skipped prompt tokens, %", series, charts.PERCENT_FROM_ZERO, shared, "skipped_token_ratio")


def _hits(buckets: Sequence[Bucket], shared: _Shared) -> Figure:
    series = _by_arm(buckets, lambda row: _ratio(row["hits"], row["hit_n"]), "hit_n", shared)
    return _lines("hits", "Cache hits, % of requests", series, charts.PERCENT_FROM_ZERO, shared, "cache_hit_rate")


def _sent(buckets: Sequence[Bucket], shared: _Shared) -> Figure:
    series = _by_arm(buckets, lambda row: _ratio(row["sent_bytes"], row["sendable_bytes"]), "sent_n", shared)
    return _lines("interconnect", "Interconnect efficiency, %", series, charts.PERCENT_FROM_ZERO, shared, "interconnect_efficiency")


def _cost(buckets: Sequence[Bucket], shared: _Shared) -> Figure:
    series = _by_arm(buckets, lambda row: _ratio(row["gpu_s"], row["gpu_tokens"]), "gpu_n", shared)
    title = "GPU time per output token, ms"
    return _lines("gpu-time", title, series, charts.MILLISECONDS_FROM_ZERO, shared, "gpu_s_per_output_token")


def _requests(buckets: Sequence[Bucket], shared: _Shared) -> Figure:
    series = _by_arm(buckets, lambda row: row["n"], "n", shared)
    return _lines("requests", f"Requests per {shared.words}", series, charts.PLAIN_FROM_ZERO, shared, None)


def _lines(key: str, title: str, series: Sequence[Series], axis: charts.Axis, shared: _Shared, metric: str | None) -> Figure:
    drawn = charts.lines(key, title, series, axis, _note(series, shared, metric), shared.period, shared.width)
    return replace(drawn, metric=by_name()[metric] if metric else None)


def _length(row: Bucket) -> float | None:
    share = _ratio(row["verified_tokens"], row["verify_steps"])
    return None if share is None else 1.0 + share


def _by_arm(buckets: Sequence[Bucket], value: Callable[[Bucket], float | None], n: str, shared: _Shared) -> list[Series]:
    """A line per arm; where no arm is marked, one of all requests."""
    if not any(row["arm"] in shared.arms for row in buckets):
        return [line for line in [Series("all requests", theme.TREATED, _points(buckets, value, n))] if line.points]
    arms = shared.arms.items()
    series = [Series(name, color, _points([row for row in buckets if row["arm"] == arm], value, n)) for arm, (name, color) in arms]
    return [line for line in series if line.points]


def _merged(buckets: Sequence[Bucket], arm: str) -> list[Bucket]:
    """The rows of an arm; those without one where that arm is nowhere marked."""
    marked = [row for row in buckets if row["arm"] == arm]
    return marked or [row for row in buckets if row["arm"] is None]


def _points(rows: Iterable[Bucket], value: Callable[[Bucket], float | None], n: str) -> list[tuple[datetime, float, int]]:
    found = ((row["bucket"], value(row), row[n]) for row in rows)
    return [(at, float(v), int(count)) for at, v, count in found if v is not None]


def _ratio(numerator: Any, denominator: Any) -> float | None:
    return float(numerator) / float(denominator) if numerator is not None and denominator else None


def _note(series: Sequence[Series], shared: _Shared, metric: str | None) -> str:
    """What stands behind the lines; where there is no point, why."""
    if not any(line.points for line in series):
        return NO_REQUESTS if metric is None else f"No data: {by_name()[metric].missing or 'no request of this segment has it'}."
    counts = {"" if line.is_shared else line.name: sum(n for _, _, n in line.points) for line in series}
    said = f"{', '.join(f'{theme.count(n)} {name}' for name, n in counts.items())}. " if len(counts) > 1 else ""
    return f"{said}One point every {shared.words}. {shared.newest}".strip()
