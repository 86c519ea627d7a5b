"""Rates in, the passes that answer them out: sums per second of the period, scaled to what sampling left out, and said so.

The period is that asked for, as far as requests are stored in it; under the key `hour` or `day`, the part of it in there. `sampling` says
of each replica and window what its spans must be multiplied by. Where windows of too few spans hold more than `FEW_SHARE` of what the
segment's replicas counted, no rate is given.
"""

from __future__ import annotations

from collections.abc import Sequence

from queries.metric_sql import MetricRow
from queries.report_parts import Part, listed, mark, marks, matched, said, sums

KINDS = ("rate",)
WINDOW_S = 300
FEW_SHARE = 0.05
STEPS = {'"hour"': "1 hour", '"day"': "1 day"}
_WEIGHT = (
    "case when sampling.state in ('whole', 'sampled') then sampling.weight "
    "when sampling.state = 'few' then 1 / sampling.fraction else 1 end"
)


def rates(names: Sequence[str], metrics: Sequence[MetricRow], period: str) -> Part | None:
    """A part of all rates; `period` is a query for when the period begins and ends, `since` and `until`."""
    chosen = [metric for metric in metrics if metric.kind in KINDS]
    if not chosen:
        return None
    inner = ", ".join([*names, "replica", "ended_at", *(item for metric in chosen for item in marks(metric))])
    weighed = f"select marked.*, sampling.state, coalesce({_WEIGHT}, 1) as weight from (select {inner} from rows) as marked "
    weighed += f"left join sampling on {_same_window()}"
    items = ", ".join(item for metric in chosen for item in _items(metric))
    time = next((name for name in names if name in STEPS), None)
    return Part(
        "rates",
        (
            f"period as ({period})",
            f"rated as (select {listed(names)}{items} from ({weighed}) group by all)",
            f"few as ({_few(names, time)})",
            f"rates as (select rated.*, few.share as few_share, {_seconds(time)} as period_s "
            f"from rated left join few on {matched(names, 'rated', 'few')} cross join period)",
        ),
        {name: text for metric in chosen for name, text in _shown(metric).items()},
    )


def _items(metric: MetricRow) -> list[str]:
    num = mark(metric, "num")
    return [
        f"sum({num} * weight) as {mark(metric, 'sum')}",
        f"bool_or(state in ('sampled', 'few')) filter (where {num} is not null) as {mark(metric, 'scaled')}",
        f"bool_or(state is null or state = 'excess') filter (where {num} is not null) as {mark(metric, 'unchecked')}",
        *sums(metric),
    ]


def _same_window() -> str:
    window = f"time_bucket(to_seconds({WINDOW_S}), marked.ended_at)"
    return f"sampling.replica = marked.replica and sampling.window_started_at = {window}"


def _few(names: Sequence[str], time: str | None) -> str:
    """Of each segment, the share of what its replicas counted that lies in windows of too few spans, those with none among them."""
    step = f", date_trunc('{_unit(time)}', window_started_at) as {time}" if time else ""
    counted = (
        f"select replica{step}, sum(counted) as counted, sum(counted) filter (where state = 'few') as few from sampling, period "
        f"where window_started_at > period.since - to_seconds({WINDOW_S}) and window_started_at < period.until group by all"
    )
    same = "served.replica = counted.replica" + (f" and served.{time} = counted.{time}" if time else "")
    return (
        f"select {listed(names, 'served.')}coalesce(sum(few), 0) / nullif(sum(counted), 0) as share "
        f"from (select distinct {listed(names)}replica from rows) as served join ({counted}) as counted on {same} group by all"
    )


def _seconds(time: str | None) -> str:
    if time is None:
        return "epoch_us(period.until - period.since) / 1e6"
    ends = f"least(period.until, rated.{time} + interval {STEPS[time]})"
    return f"epoch_us({ends} - greatest(period.since, rated.{time})) / 1e6"


def _unit(time: str) -> str:
    return time.strip('"')


def _shown(metric: MetricRow) -> dict[str, str]:
    n = f"rates.{mark(metric, 'n')}"
    total = f"coalesce(rates.{mark(metric, 'sum')}, case when rates.{mark(metric, 'known')} > 0 then 0 end)"
    refused = f"rates.few_share > {FEW_SHARE}"
    scaled, unchecked = (f"case when rates.{mark(metric, word)} then '{word}' end" for word in ("scaled", "unchecked"))
    told = f"coalesce(nullif(concat_ws('+', {scaled}, {unchecked}), ''), 'whole')"
    return {
        metric.name: f"case when {refused} then null when rates.period_s > 0 then {total} / rates.period_s end",
        **said(metric, "rates"),
        f"{metric.name}_totals": f"case when {n} > 0 then case when {refused} then 'refused' else {told} end end",
    }
