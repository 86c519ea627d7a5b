"""Quality in, the passes that answer it out: scores of settings over those of the original, each request by what served it."""

from __future__ import annotations

from collections.abc import Sequence

from queries.metric_sql import MetricRow
from queries.report_parts import Part, listed

NAME = "quality"
COLUMNS = ("model", "levers")
_RATIO = "case when s.better = 'lower' then o.score / nullif(s.score, 0) else s.score / nullif(o.score, 0) end"


def quality(names: Sequence[str], metrics: Sequence[MetricRow], period: str = "") -> Part | None:
    """A part of the mean quality over requests: of a request, the lowest ratio that a setting of its levers has for its model.

    A ratio is the mean over suites of the setting's mean score over the original's, inverted where lower scores are better.
    `period` is a condition on `evaluated_at`, or empty.
    """
    if all(metric.name != NAME for metric in metrics):
        return None
    asked = f" where {period}" if period else ""
    originals = "o.suite = s.suite and o.model is not distinct from s.model and (o.lever = s.lever or o.lever is null)"
    entries = f'select {listed(names)}"of:model", levers, served, unnest(map_entries(levers)) as stated from served'
    return Part(
        "quality",
        (
            "scores as (select suite, model, lever, setting, avg(score) as score, any_value(better) as better "
            f"from evaluations{asked} group by all)",
            f"ratios as (select s.model, s.lever, s.setting, avg({_RATIO}) as ratio from scores s join scores o on {originals} "
            "where s.setting <> 'original' and o.setting = 'original' group by all)",
            f'served as (select {listed(names)}model as "of:model", levers, count(*) as served from rows group by all)',
            f'worst as (select {listed(names, "each_setting.")}"of:model", levers, served, min(ratio) as ratio '
            f"from ({entries}) as each_setting join ratios "
            'on ratios.lever = stated.key and ratios.setting = stated.value and ratios.model is not distinct from "of:model" group by all)',
            f"quality as (select {listed(names)}sum(ratio * served) / sum(served) as ratio, sum(served) as n from worst "
            "where ratio is not null group by all)",
        ),
        {
            NAME: "quality.ratio",
            f"{NAME}_n": "coalesce(quality.n, 0)::bigint",
            f"{NAME}_coverage": "coalesce(quality.n, 0) / nullif(plain.requests, 0)",
            f"{NAME}_provenance": "case when quality.ratio is not null then 'derived' end",
        },
    )
