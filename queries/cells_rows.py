"""A plan of what to read in, queries over the tiers of cells out: a series' place among the keys, sums and bins by place, time and metric."""

from __future__ import annotations

from collections.abc import Sequence

from queries.cells_plan import Plan, Range

KEYS = "select * exclude (series_id, replica_of) from named qualify row_number() over (partition by place) = 1"
_SUMS = ("known", "n", "num", "den", "times")
_OF_SERIES = {"replica": "s.replica", "batch_bucket": "s.batch_bucket"}


def named(by: Sequence[str]) -> str:
    """One row per series of the lever `$lever`: the number of its place among the keys, and the keys. Times have no place."""
    keys = {name: _key(name) for name in by if name not in ("hour", "day")}
    place = f"dense_rank() over (order by {', '.join(keys.values())})" if keys else "1"
    items = ["series_id", f"({place})::integer as place", "s.replica as replica_of", *(f"{text} as {quoted(name)}" for name, text in keys.items())]
    return f"select {', '.join(items)} from cell_series s join cell_segments g using (segment_id) where s.lever = $lever"


def sums(metrics: Sequence[str], plan: Plan, time: str | None, *, per_replica: bool) -> str:
    """One row per place, `t` and metric: the sums, and `spread`, the largest replica's over the mean of all that have any."""
    columns = ", ".join(_SUMS)
    rows = _rows(plan, "cells", f"metric_id, {columns}", time, metrics, per_replica=per_replica)
    added = ", ".join(f"sum({name}) as {name}" for name in _SUMS)
    level = "replica_of" if per_replica else "null"
    by_level = f"select place, t, {level} as level, metric_id, {added} from ({rows}) join named using (series_id) group by all"
    spread = "max(num) filter (where n > 0) / nullif(avg(num) filter (where n > 0), 0) as spread"
    return f"select place, t, metric, {added}, {spread} from ({by_level}) join cell_metrics using (metric_id) group by all"


def bins(metrics: Sequence[str], plan: Plan, time: str | None, *, per_replica: bool) -> str:
    """One row per place, `t`, metric and bin: `n`, how many requests lie in it."""
    rows = _rows(plan, "histograms", "metric_id, unnest(bins) as bin, unnest(counts) as n", time, metrics, per_replica=per_replica)
    added = f"select place, t, metric_id, bin, sum(n) as n from ({rows}) join (select series_id, place from named) using (series_id) group by all"
    return f"select place, t, metric, bin, n from ({added}) join cell_metrics using (metric_id) where n > 0"


def quoted(name: str) -> str:
    """A name as a column of ours."""
    return f'"{name}"'


def _key(name: str) -> str:
    return "s.arm" if name.startswith("arm.") else _OF_SERIES.get(name, f"g.{quoted(name)}")


def _rows(plan: Plan, kind: str, columns: str, time: str | None, metrics: Sequence[str], *, per_replica: bool) -> str:
    """What the plan reads of each tier, days of all replicas together where no replica is asked for."""
    asked = ", ".join(f"'{name}'" for name in metrics)
    moment = f"date_trunc('{time}', started_at)" if time else "null::timestamptz"
    read = {"day" if per_replica else "fleet": plan.days, "hour": plan.hours, "block": plan.blocks}
    return " union all ".join(
        f"select series_id, {moment} as t, {columns} from {tier}_{kind} where {_within(ranges)} "
        f"and metric_id in (select metric_id from cell_metrics where metric in ({asked}))"
        for tier, ranges in read.items()
        if ranges or tier == "block"
    )


def _within(ranges: Sequence[Range]) -> str:
    found = [f"started_at >= timestamptz '{begin.isoformat()}' and started_at < timestamptz '{end.isoformat()}'" for begin, end in ranges]
    return f"({' or '.join(found)})" if found else "false"
