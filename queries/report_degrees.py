"""Parallel efficiency in, the passes that answer it out: GPU time at the least degree of parallelism over GPU time as it was."""

from __future__ import annotations

from collections.abc import Sequence

from queries.metric_sql import MetricRow
from queries.report_parts import Part, listed, mark, marks, sums

NAME = "parallel_efficiency"
STRATUM = ("model", "hardware", "input_bucket")
COLUMNS = (*STRATUM, "gpus")


def degrees(names: Sequence[str], metrics: Sequence[MetricRow]) -> Part | None:
    """A part of the efficiency: sum(T0 * N0 * tokens) / sum(N * busy time), of requests whose stratum was served at several degrees.

    A stratum is all that was selected of one model, hardware and input bucket, whatever the segment: T0 is its time per token on N0 GPUs.
    """
    metric = next((metric for metric in metrics if metric.name == NAME), None)
    if metric is None:
        return None
    n, known, busy, gaps = (mark(metric, tag) for tag in ("n", "known", "num", "den"))
    strata = [f'"of:{column}"' for column in STRATUM]
    of = ", ".join(strata)
    marked = ", ".join([*names, *(f"{c} as {s}" for c, s in zip(STRATUM, strata, strict=True)), 'gpus as "of:gpus"', *marks(metric)])
    per_degree = ", ".join([f"sum({busy}) as busy_s, sum({gaps}) as gaps", *sums(metric)])
    by_stratum = " and ".join(f"d.{column} is not distinct from least_degree.{column}" for column in strata)
    several = "least_degree.time_s is not null"
    efficiency = 'sum(least_degree.gpus * time_s * gaps) / nullif(sum(case when time_s is not null then d."of:gpus" * busy_s end), 0)'
    return Part(
        "parallel",
        (
            f'by_degree as (select {listed(names)}{of}, "of:gpus", {per_degree} from (select {marked} from rows) group by all)',
            f'degrees as (select {of}, "of:gpus", sum(busy_s) / sum(gaps) as time_s from by_degree where gaps > 0 group by all)',
            f'least_degree as (select {of}, min("of:gpus") as gpus, arg_min(time_s, "of:gpus") as time_s from degrees '
            "group by all having count(*) > 1)",
            f"parallel as (select {listed(names, 'd.')}{efficiency} as efficiency, sum(d.{n}) filter (where {several}) as n, "
            f"sum(d.{known}) as known from by_degree d left join least_degree on {by_stratum} group by all)",
        ),
        {
            NAME: "parallel.efficiency",
            f"{NAME}_n": "coalesce(parallel.n, 0)::bigint",
            f"{NAME}_coverage": "coalesce(parallel.known, 0) / nullif(plain.requests, 0)",
            f"{NAME}_provenance": "case when parallel.efficiency is not null then 'derived' end",
        },
    )
