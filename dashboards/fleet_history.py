"""The history of one metric per replica in: a chart of those that matter, and a line for each row of the table out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from dashboards import charts, theme
from dashboards.charts import Axis, Period, Series
from dashboards.choice import Choice, ChoiceError
from dashboards.figure import Figure, Sql
from dashboards.reader import Reader
from pipeline.metrics import Metric, by_name, in_cells, of_quantile
from pipeline.segments import JUDGING_KEYS
from queries import files

DEFAULT = "requests_per_s"
CHOICES = (
    "requests_per_s", "output_tokens_per_s", "prompt_tokens_per_s", "concurrency", "batch_at_admission", "queue_depth", "queue_s", "ttft_s",
    "tpot_s", "kv_usage", "preemptions_per_1k_requests", "skipped_token_ratio", "cache_hit_rate", "draft_acceptance", "error_rate",
    "kv_transfer_bytes_per_s", "interconnect_efficiency",
)  # fmt: skip
COLORS = (theme.TREATED, theme.CONTROL, theme.SECOND)
ALL = "all replicas"
SPARK_WIDTH, SPARK_HEIGHT = 110, 22
_AXES = {"s": Axis(1000.0, "ms", start=0.0), "s/token": Axis(1000.0, "ms/token", start=0.0), "ratio": charts.PERCENT_FROM_ZERO}
_AXES["bytes/s"] = Axis(1e-9, "GB/s", start=0.0)
Points = list[tuple[datetime, float, int]]


@dataclass(frozen=True)
class History:
    """A metric over time: per replica, and of all together under None."""

    metric: Metric
    points: Mapping[str | None, Points]
    sql: Sql
    width: timedelta
    period: Period


def metric_of(chosen: Choice) -> Metric:
    """The metric whose history is shown. Raises ChoiceError for one that is in no cell."""
    metric = by_name()[of_quantile(chosen.metric or DEFAULT)]
    if not in_cells(metric) or metric.kind == "spread":
        msg = f"metric {metric.name!r} is not kept per replica over time; kept are: {', '.join(CHOICES)}"
        raise ChoiceError(msg)
    return metric


def history(reader: Reader, chosen: Choice, replicas: Sequence[str]) -> History:
    """Asks for the metric's history of these replicas."""
    metric, keys = metric_of(chosen), {key: chosen.keys.get(key) for key in (*JUDGING_KEYS, "tenant")}
    params = {
        **keys,
        "metric": metric.name,
        "kind": metric.kind,
        "replicas": list(replicas),
        "since": chosen.since,
        "until": chosen.until,
        "width_s": chosen.width_s,
        "is_long": (chosen.until - chosen.since) > timedelta(hours=48),
    }
    question = files.question("page_fleet_history")
    found: dict[str | None, Points] = {}
    for row in reader.frame(question, params).iter_rows(named=True):
        if row["value"] is not None:
            found.setdefault(row["replica"], []).append((row["bucket"], row["value"], row["n"]))
    width = timedelta(seconds=chosen.width_s)
    return History(metric, found, Sql(question, params), width, Period(chosen.since, chosen.until))


def figure(told: History, named: Sequence[str]) -> Figure:
    """The first three of these replicas, and all of the choice together."""
    drawn = [(name, color) for name, color in zip([one for one in named if one in told.points], COLORS, strict=False)]
    lines = [Series(name, color, _whole(told.points[name], told)) for name, color in drawn]
    unit = _AXES.get(told.metric.unit, replace(charts.PLAIN_FROM_ZERO, title=told.metric.unit))
    if told.metric.kind != "rate" and len(told.points) > 2:
        lines.append(Series(ALL, theme.MUTED, _whole(told.points.get(None, []), told), is_shared=True))
    title = f"{told.metric.title} per replica, {unit.title or told.metric.unit}"
    lines = [line for line in lines if line.points]
    missing = told.metric.missing or "no request of these replicas has it"
    note = f"Mean of every {theme.age(told.width.total_seconds())}." if lines else f"No data: {missing}."
    made = charts.lines("history", title, lines, unit, note, told.period, told.width)
    n = sum(point[2] for line in lines if line.name != ALL for point in line.points)
    return replace(made, sql=told.sql, metric=told.metric, n=n if lines else None)


def spark(told: History, replica: str) -> Markup:
    """A replica's history as a small line, on the scale of all of them; empty where there is none."""
    points = _whole(told.points.get(replica, []), told)
    if len(points) < 2:
        return Markup("")
    most = max(value for name, line in told.points.items() if name is not None for _, value, _ in line) or 1.0
    start, length = told.period.since, (told.period.until - told.period.since).total_seconds()
    places = [
        (SPARK_WIDTH * (at - start).total_seconds() / length, SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * value / most)
        for at, value, _ in points
    ]
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return Markup('<svg class="spark" viewBox="0 0 {} {}" aria-hidden="true"><polyline points="{}"/></svg>').format(
        SPARK_WIDTH, SPARK_HEIGHT, drawn
    )


def _whole(points: Points, told: History) -> Points:
    """Without buckets that the period cuts, which look like a fall; where there are no others, as they are."""
    whole = [one for one in points if told.period.since <= one[0] and one[0] + told.width <= told.period.until]
    return whole or points


def choices(chosen: Choice) -> list[dict[str, Any]]:
    """The metrics to choose from."""
    shown = metric_of(chosen).name
    names = CHOICES if shown in CHOICES else (*CHOICES, shown)
    return [{"name": name, "title": by_name()[name].title, "is_chosen": name == shown} for name in names]
