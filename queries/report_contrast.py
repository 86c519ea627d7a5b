"""Contrasts of a lever's arms in, the passes that answer them out: net inter-token latency, its gain, and the ratio of lengths.

Treated is held against control inside each block and stratum; control's time is weighted as treated's tokens are.
"""

from __future__ import annotations

from collections.abc import Sequence

from queries.metric_sql import MetricRow
from queries.report_parts import Part, listed, mark, marks, matched, sums

BLOCK_S = 300
STRATUM = ("input_bucket", "temperature_bucket")
OFF = "'off', 'none', '0', 'disabled', 'false'"
NET_ITL, GAIN, LENGTHS = "net_itl_s", "net_itl_gain", "length_ratio"
NAMES = (NET_ITL, GAIN, LENGTHS)
COLUMNS = ("started_at", "arms", "levers", "ttft_s", *STRATUM)


def contrasts(names: Sequence[str], metrics: Sequence[MetricRow], lever: str) -> Part | None:
    """A part of all contrasts over arms."""
    chosen = {metric.name: metric for metric in metrics if metric.name in NAMES}
    if not chosen:
        return None
    timed = chosen.get(NET_ITL) or chosen.get(GAIN)
    lengths = chosen.get(LENGTHS)
    strata = [column for column in STRATUM if f'"{column}"' not in names]
    tables = [f"arms as ({_arms(names, strata, [metric for metric in (timed, lengths) if metric], lever)})"]
    joins = []
    if timed:
        tables += _net(names, strata, timed)
        joins.append("net")
    if lengths:
        tables.append(f"lengths as ({_lengths(names, strata, lengths)})")
        joins.append("lengths")
    shown = {name: text for metric in chosen.values() for name, text in _shown(metric).items()}
    if timed:
        shown["net_itl_basis"] = "contrasts.net_itl_basis"
    if len(joins) == 1:
        last = f"contrasts as (select * from {joins[0]})"
    else:
        last = f"contrasts as (select net.*, lengths.* exclude ({', '.join(names)})" if names else "contrasts as (select *"
        last += f" from net left join lengths on {matched(names, 'net', 'lengths')})"
    return Part("contrasts", (*tables, last), shown)


def _arms(names: Sequence[str], strata: Sequence[str], metrics: Sequence[MetricRow], lever: str) -> str:
    """Sums per segment, block, stratum and arm."""
    setting = f"levers['{lever}']"
    by_setting = f"case when lower({setting}) in ({OFF}) then 'disabled_in_place' when {setting} is not null then 'treated' end"
    arm = f"coalesce(arms['{lever}'], {by_setting})"
    block = f"time_bucket(to_seconds({BLOCK_S}), started_at) as block"
    marked = [*names, *strata, "ttft_s", block, f"{arm} as arm", *(item for metric in metrics for item in marks(metric))]
    items = [item for metric in metrics for item in (*_sums(metric), *sums(metric))]
    keys = ", ".join([*names, "block", *strata, "arm"])
    return f"select {keys}, avg(ttft_s) as mean_ttft_s, {', '.join(items)} from (select {', '.join(marked)} from rows) group by all"


def _sums(metric: MetricRow) -> list[str]:
    num, den = mark(metric, "num"), mark(metric, "den")
    return [f"sum({num}) as {num}", *([f"sum({den}) as {den}"] if metric.denominator != "1" else [])]


def _net(names: Sequence[str], strata: Sequence[str], metric: MetricRow) -> list[str]:
    n, known, busy, gaps = (mark(metric, tag) for tag in ("n", "known", "num", "den"))
    same = " and ".join(f"t.{column} is not distinct from c.{column}" for column in [*names, "block", *strata])
    extra = f"t.{n} * greatest(0, coalesce(t.mean_ttft_s - c.mean_ttft_s, 0))"
    pairs = (
        f"select {listed(names, 't.')}t.{n} as n, t.{busy} + {extra} as net_s, t.{gaps} as gaps, "
        f"t.{gaps} * c.{busy} / nullif(c.{gaps}, 0) as control_s, c.{gaps} > 0 as is_matched "
        f"from (select * from arms where arm = 'treated' and {gaps} > 0) t left join (select * from arms where arm = 'control') c on {same}"
    )
    is_matched = "filter (where is_matched)"
    treated = (
        f"select {listed(names)}sum(n) as treated_n, sum(n) {is_matched} as matched_n, sum(net_s) / sum(gaps) as treated_itl_s, "
        f"1 - sum(net_s) {is_matched} / sum(control_s) {is_matched} as gain from pairs group by all"
    )
    every = (
        f"select {listed(names)}sum({busy}) / nullif(sum({gaps}), 0) as every_itl_s, sum({n}) as n, sum({known}) as known "
        "from arms group by all"
    )
    net = (
        "select every_request.*, gain, treated_n, matched_n, treated_itl_s, "
        "case when matched_n > 0 then 'control' when n > 0 then 'tpot' end as net_itl_basis "
        f"from every_request left join treated on {matched(names, 'every_request', 'treated')}"
    )
    return [f"pairs as ({pairs})", f"treated as ({treated})", f"every_request as ({every})", f"net as ({net})"]


def _lengths(names: Sequence[str], strata: Sequence[str], metric: MetricRow) -> str:
    """Treated's tokens over those that as many requests of control had."""
    n, tokens = mark(metric, "n"), mark(metric, "num")
    same = " and ".join(f"t.{column} is not distinct from c.{column}" for column in [*names, "block", *strata])
    paired = f"c.{n} > 0"
    return (
        f"select {listed(names, 't.')}sum(t.{n}) as compared_n, sum(t.{n}) filter (where {paired}) as paired_n, "
        f"sum(t.{tokens}) filter (where {paired}) / nullif(sum(t.{n} * c.{tokens} / nullif(c.{n}, 0)), 0) as length_ratio "
        f"from (select * from arms where arm = 'treated' and {n} > 0) t left join (select * from arms where arm = 'control') c on {same} "
        "group by all"
    )


def _shown(metric: MetricRow) -> dict[str, str]:
    if metric.name == NET_ITL:
        on_control = "contrasts.net_itl_basis = 'control'"
        return {
            NET_ITL: f"case when {on_control} then contrasts.treated_itl_s else contrasts.every_itl_s end",
            f"{NET_ITL}_n": f"coalesce(case when {on_control} then contrasts.treated_n else contrasts.n end, 0)::bigint",
            f"{NET_ITL}_coverage": "coalesce(contrasts.known, 0) / nullif(plain.requests, 0)",
            f"{NET_ITL}_provenance": f"case when contrasts.n > 0 then plain.{mark(metric, 'said')} end",
        }
    value, paired, of = ("gain", "matched_n", "treated_n") if metric.name == GAIN else ("length_ratio", "paired_n", "compared_n")
    return {
        metric.name: f"contrasts.{value}",
        f"{metric.name}_n": f"coalesce(contrasts.{paired}, 0)::bigint",
        f"{metric.name}_coverage": f"contrasts.{paired} / nullif(contrasts.{of}, 0)",
        f"{metric.name}_provenance": f"case when contrasts.{value} is not null then 'derived' end",
    }
