"""A plan of what to read in, queries over the tiers of cells out: the place of a series among the keys, sums and bins by place."""

from __future__ import annotations

from collections.abc import Sequence

from queries import cells_histogram
from queries.cells_plan import Plan, Range
from queries.metric_sql import QUANTILES

KEYS = "select * exclude (series_id, replica_of) from named qualify row_number() over (partition by place) = 1"
_SUMS = ("known", "n", "num", "den", "times")
_NO_TIME = "timestamptz '1970-01-01 00:00:00+00'"
_PLACE_BIT, _TIME_BIT = 36, 15  # of a slot: where the place begins, and the hour; what is below is the metric
_OF_SERIES = {"replica": "s.replica", "batch_bucket": "s.batch_bucket"}


def named(by: Sequence[str], *, is_fleet: bool = False) -> str:
    """One row per series of the lever `$lever`: the number of its place among the keys, and the keys. Times have no place.

    With `is_fleet` only those of all replicas together: nothing else is read.
    """
    keys = {name: _key(name) for name in by if name not in ("hour", "day")}
    place = f"dense_rank() over (order by {', '.join(keys.values())})" if keys else "1"
    of_segment = all(text.startswith("g.") for text in keys.values())  # few segments are put in order faster than many series
    segments = f"(select g.*, ({place})::integer as place from cell_segments g)" if of_segment else "cell_segments"
    shown = [f"{text} as {quoted(name)}" for name, text in keys.items()]
    items = ["series_id", "g.place" if of_segment else f"({place})::integer as place", "s.replica as replica_of", *shown]
    together = " and s.is_together" if is_fleet else ""
    return f"select {', '.join(items)} from cell_series s join {segments} g using (segment_id) where s.lever = $lever{together}"


def sums(metrics: Sequence[str], plan: Plan, time: str | None, *, per_replica: bool) -> str:
    """One row per place, `t` and metric: the sums, and `spread`, the largest replica's over the mean of all that have any."""
    rows = _rows(plan, "cells", ", ".join(_SUMS), time, metrics, per_replica=per_replica)
    added = ", ".join(f"sum({name}) as {name}" for name in _SUMS)
    by_level = f"select place, t, {'replica_of' if per_replica else 'null'} as level, metric_id, {added} from ({rows}) group by all"
    spread = "max(num) filter (where n > 0) / nullif(avg(num) filter (where n > 0), 0) as spread"
    return f"select place, t, metric, {added}, {spread} from ({by_level}) join cell_metrics using (metric_id) group by all"


def tails(metrics: Sequence[str], plan: Plan, time: str | None, *, per_replica: bool) -> str:
    """One row per place, `t` and metric: the percentiles.

    What a bin belongs to is one number while bins are added up: grouping by four columns takes half as long again.
    """
    hour = f" + (epoch(t)::bigint // 3600 << {_TIME_BIT})" if time else ""
    slot = f"(place::bigint << {_PLACE_BIT}){hour} + metric_id"
    rows = _rows(plan, "histograms", "bins, counts", time, metrics, per_replica=per_replica)
    apart = f"select {slot} as slot, unnest(bins) as bin, unnest(counts) as n from ({rows})"
    added = f"select slot, bin, sum(n::double) as n from ({apart}) group by all"
    found = cells_histogram.percentiles(f"({added})", "slot")
    hours = f"(slot >> {_TIME_BIT}) & {(1 << _PLACE_BIT - _TIME_BIT) - 1}"
    placed = f"(slot >> {_PLACE_BIT})::integer as place, {_NO_TIME} + to_hours({hours}) as t"
    named_by = f"join cell_metrics m on m.metric_id = (found.slot & {(1 << _TIME_BIT) - 1})"
    return f"select {placed}, metric, {', '.join(tag for tag, _ in QUANTILES)} from ({found}) found {named_by}"


def quoted(name: str) -> str:
    """A name as a column of ours."""
    return f'"{name}"'


def _key(name: str) -> str:
    return "s.arm" if name.startswith("arm.") else _OF_SERIES.get(name, f"g.{quoted(name)}")


def _rows(plan: Plan, kind: str, columns: str, time: str | None, metrics: Sequence[str], *, per_replica: bool) -> str:
    """What the plan reads of each tier, in its place; days of all replicas together where no replica is asked for."""
    asked = ", ".join(f"'{name}'" for name in metrics)
    moment = f"date_trunc('{time}', started_at)" if time else _NO_TIME
    read = {"week": plan.weeks, "day" if per_replica else "fleet": plan.days, "hour": plan.hours, "block": plan.blocks}
    return " union all ".join(
        f"select place, replica_of, {moment} as t, metric_id, {columns} from {tier}_{kind} join named using (series_id) "
        f"where {_within(ranges)} and metric_id in (select metric_id from cell_metrics where metric in ({asked}))"
        for tier, ranges in read.items()
        if ranges or tier == "block"
    )


def _within(ranges: Sequence[Range]) -> str:
    found = [f"started_at >= timestamptz '{begin.isoformat()}' and started_at < timestamptz '{end.isoformat()}'" for begin, end in ranges]
    return f"({' or '.join(found)})" if found else "false"
