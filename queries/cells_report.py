"""Metric rows, keys and a plan of what to read in, one SQL statement over cells out: the report of a long time. Nothing here runs it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from queries import cells_rows, metric_sql
from queries.cells_plan import Plan
from queries.metric_sql import QUANTILES, MetricRow
from queries.report import Question, ReportError

KINDS = ("ratio", "mean", "share", "quantile", "product", "rate", "spread")
SEGMENT_KEYS = ("model", "hardware", "topology", "input_bucket", "tenant")
WITH_LEVER = {"speculation": ("temperature_bucket", "batch_bucket")}
TIMES = ("hour", "day")
PROVENANCE = "cells"
REQUESTS = "requests"


def refusal(metrics: Sequence[MetricRow], by: Sequence[str]) -> str:
    """Why cells cannot answer, in a sentence; empty where they can."""
    levers = _levers(by)
    taken = [*SEGMENT_KEYS, "replica", *TIMES, *(f"arm.{lever}" for lever in levers), *(WITH_LEVER.get(levers[0], ()) if levers else ())]
    other = [name for name in by if name not in taken]
    if len(levers) > 1:
        return f"keys {', '.join(by)}: cells tell the arms of one lever apart at a time"
    if sum(name in TIMES for name in by) > 1:
        return "keys hour and day: cells take one of them at a time"
    if other:
        return f"key {other[0]!r} is not in cells; in them are: {', '.join(taken)}, arm.<lever>"
    unheld = [metric.name for metric in metrics if not is_held(metric)]
    if unheld:
        held = [metric.name for metric in metrics if is_held(metric)]
        kept = f"; of those asked for are kept: {', '.join(held)}" if held else ""
        return f"metric {unheld[0]!r} is not kept in cells: it needs the requests{kept}"
    if levers and "replica" in by and (tailed := [metric.name for metric in metrics if is_binned(metric)]):
        return f"metric {tailed[0]!r}: the histograms of a lever's arms are of all replicas together"
    return ""


def is_held(metric: MetricRow) -> bool:
    """Whether cells hold a metric's sums."""
    return metric.kind in KINDS and bool(metric.numerator) and not metric.is_configured and not metric_sql.virtual_columns(metric)


def report(metrics: Sequence[MetricRow], by: Sequence[str], plan: Plan) -> Question:
    """One row per segment, with the columns of a report over requests; provenance says `cells`.

    Percentiles are within 1 % (`cells_histogram`). A rate is of the requests that were seen: nothing is scaled to what sampling left out.

    Raises:
        ReportError: cells do not have a key or a metric, or one came twice.
    """
    if why := _repeated(by, "key") or _repeated([metric.name for metric in metrics], "metric") or refusal(metrics, by):
        raise ReportError(why)
    time = time_of(by)
    binned = [metric.name for metric in metrics if is_binned(metric)]
    per_replica = is_by_replica(metrics, by)
    is_fleet = not (per_replica or plan.hours or plan.blocks)
    sums = cells_rows.sums([REQUESTS, *(metric.name for metric in metrics)], plan, time, per_replica=per_replica)
    tables = [f"named as materialized ({cells_rows.named(by, is_fleet=is_fleet)})", f"totals as materialized ({sums})"]
    if binned:
        tables.append(f"tails as ({cells_rows.tails(binned, plan, time, per_replica=per_replica)})")
    joined = "totals left join tails using (place, t, metric)" if binned else "totals"
    items = [item for metric in metrics for item in _items(metric, plan, time)]
    items = [f"{_of(REQUESTS, 'coalesce(sum(n), 0)')}::bigint as requests", *items]
    # Materialized: else the planner looks through it, and takes 20 s for all metrics.
    wide = f"select {'place, t, ' if by else ''}{', '.join(items)} from {joined}{' group by place, t' if by else ''}"
    tables.append(f"wide as materialized ({wide})")
    keys = [f"{'t' if name in TIMES else f'keys.{cells_rows.quoted(name)}'} as {cells_rows.quoted(name)}" for name in by]
    shown = ", ".join([*keys, "wide.* exclude (place, t)" if by else "wide.*"])
    places = f" join ({cells_rows.KEYS}) as keys using (place)" if by else ""
    return Question(f"with {', '.join(tables)} select {shown} from wide{places}{_order(by)}", {"lever": _lever(by)})


def is_by_replica(metrics: Sequence[MetricRow], by: Sequence[str]) -> bool:
    """Whether replicas have to be told apart, by a key or by a metric."""
    return "replica" in by or any(metric.kind == "spread" for metric in metrics)


def time_of(by: Sequence[str]) -> str | None:
    """The key that is a time."""
    return next((name for name in by if name in TIMES), None)


def is_binned(metric: MetricRow) -> bool:
    """Whether a metric has percentiles."""
    return metric.kind == "quantile" or bool(metric.percentiles_of)


def _levers(by: Sequence[str]) -> list[str]:
    return [name.removeprefix("arm.") for name in by if name.startswith("arm.")]


def _lever(by: Sequence[str]) -> str:
    return next(iter(_levers(by)), "")


def _repeated(names: Sequence[str], what: str) -> str:
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    return f"{what} {twice!r} came twice; each is taken once" if twice is not None else ""


def _items(metric: MetricRow, plan: Plan, time: str | None) -> list[str]:
    name = metric.name
    items = [] if metric.kind == "quantile" else [f"{_of(name, _value(metric, plan, time))} as {name}"]
    items += [f"{_of(name, f'max({tag})')} as {name}_{tag}" for tag, _ in QUANTILES if is_binned(metric)]
    count = f"coalesce({_of(name, 'max(n)')}, 0)"
    requests = _of(REQUESTS, "max(n)")
    items += [f"{count}::bigint as {name}_n", f"coalesce({_of(name, 'max(known)')}, 0) / nullif({requests}, 0) as {name}_coverage"]
    items += [f"case when {count} > 0 then '{PROVENANCE}' end as {name}_provenance"]
    return items + ([f"case when {count} > 0 then 'unchecked' end as {name}_totals"] if metric.kind == "rate" else [])


def _of(metric: str, aggregates: str) -> str:
    """Aggregates over one metric's rows alone."""
    return re.sub(r"(?<!\w)((?:sum|max)\(\w+\))", rf"\1 filter (where metric = '{metric}')", aggregates)


def _value(metric: MetricRow, plan: Plan, time: str | None) -> str:
    if metric.kind == "ratio":
        return "max(num) / nullif(max(den), 0)"
    if metric.kind == "product":
        return "max(num) / nullif(max(n), 0) * max(times) / nullif(max(den), 0)"
    if metric.kind == "spread":
        return "max(spread)"
    return f"max(num) / nullif({_seconds(plan, time)}, 0)" if metric.kind == "rate" else "max(num) / nullif(max(n), 0)"


def _seconds(plan: Plan, time: str | None) -> str:
    """How long the period is, or the part of it in an hour or day."""
    since, until = (f"timestamptz '{moment.isoformat()}'" for moment in (plan.since, plan.until))
    if time is None:
        return f"epoch_us({until} - {since}) / 1e6"
    return f"epoch_us(least({until}, t + interval 1 {time}) - greatest({since}, t)) / 1e6"


def _order(by: Sequence[str]) -> str:
    times = [name for name in by if name in TIMES]
    order = [*map(cells_rows.quoted, times), "requests desc", *(cells_rows.quoted(name) for name in by if name not in times)]
    return f" order by {', '.join(order)}"
