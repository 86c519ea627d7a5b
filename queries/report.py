"""Metric rows, keys and a period in, one SQL statement over `requests` out: the report. Nothing here runs it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from queries import metric_sql
from queries.metric_sql import MetricRow

BLOCK_S = 300
STRATUM = ("input_bucket", "temperature_bucket")
COMPUTED_KEYS = {"hour": "date_trunc('hour', started_at)", "day": "date_trunc('day', started_at)"}
OFF = "'off', 'none', '0', 'disabled', 'false'"
AGES_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class ReportError(ValueError):
    """What was asked cannot be reported; says which word and what is taken."""


@dataclass(frozen=True, slots=True)
class Question:
    """A statement and its parameters."""

    sql: str
    params: dict[str, Any]


def report(
    metrics: Sequence[MetricRow],
    columns: Sequence[str],
    by: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    where: str | None = None,
    lever: str = "speculation",
) -> Question:
    """One row per segment: the keys, `requests`, then each metric's value, n, coverage and provenance.

    `columns` are those of `requests`; `where` is a stranger's text: such a statement may only be run by `queries.sandbox`.

    Times are parameters cast where they stand, so they may be given as text; nothing needs to be replaced in the statement afterwards.

    Raises:
        ReportError: an unknown key, a key or metric that came twice, or a key that is also a column of a metric that was asked for.
    """
    _refuse_repeats("key", by)
    _refuse_repeats("metric", [metric.name for metric in metrics])
    _refuse_clashes(by, metrics)
    keys = [(name, _key(name, columns)) for name in by]
    plain = [metric for metric in metrics if metric.kind != "contrast"]
    contrasts = [metric for metric in metrics if metric.kind == "contrast"]
    names = [f'"{name}"' for name, _ in keys]
    items = [*names, "count(*) as requests"]
    for metric in plain:
        items += [*metric_sql.value_columns(metric), *metric_sql.said_columns(metric)]
    parts = [f"base as ({_base(keys, since, until, where)})", f"plain as (select {', '.join(items)} from base group by all)"]
    if not contrasts:
        return _question(parts, "select * from plain" + _order(names), since, until)
    parts += _contrast_parts(names, contrasts[0], lever)
    chosen = ", ".join(_contrast_items(metric) for metric in contrasts)
    matched = " and ".join(f"plain.{name} is not distinct from net.{name}" for name in names) or "true"
    order = [name for name, _ in _ordered(metrics)]
    select = f"select plain.*, {chosen}, net.net_itl_basis from plain left join net on {matched}"
    return _question(
        [*parts, f"joined as ({select})"], f"select {_columns(names, metrics, order)} from joined" + _order(names), since, until
    )


def moment(text: str, now: datetime) -> datetime:
    """A time from ISO 8601 (without an offset UTC) or an age before `now` such as `90m`, `24h`, `7d`.

    Raises:
        ReportError: neither.
    """
    age = re.fullmatch(r"(\d+)([smhd])", text.strip())
    try:
        if age:
            return now - timedelta(seconds=int(age[1]) * AGES_S[age[2]])
        found = datetime.fromisoformat(text.strip())
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        msg = f"time {text[:40]!r}: ISO 8601 or an age such as 90m, 24h, 7d is taken, from year 1 to 9999 in UTC"
        raise ReportError(msg) from error


def _refuse_repeats(what: str, names: Sequence[str]) -> None:
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        msg = f"{what} {twice!r} came twice; each is taken once"
        raise ReportError(msg)


def _refuse_clashes(by: Sequence[str], metrics: Sequence[MetricRow]) -> None:
    """Two columns of one name cannot be told apart: not by a reader, and not by the statement."""
    owners = {name: metric.name for name, metric in _ordered(metrics)}
    for name in by:
        owner = owners.get(f'"{name}"')
        if owner:
            msg = f"key {name!r} is also a column of metric {owner!r}: leave out one of them (a bucket may serve as key)"
            raise ReportError(msg)


def _key(name: str, columns: Sequence[str]) -> str:
    if name in COMPUTED_KEYS:
        return COMPUTED_KEYS[name]
    kind, _, rest = name.partition(".")
    if kind in ("lever", "arm") and re.fullmatch(r"[a-z_][a-z0-9_]*", rest):
        return f"{kind}s['{rest}']"
    if name in columns:
        return f'"{name}"'
    near = difflib.get_close_matches(name, [*columns, *COMPUTED_KEYS], 1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    msg = f"key {name!r} is unknown{hint} taken: a column of requests, lever.<name>, arm.<name>, hour, day"
    raise ReportError(msg)


def _base(keys: list[tuple[str, str]], since: datetime | None, until: datetime | None, where: str | None) -> str:
    taken = [f'{expression} as "{name}"' for name, expression in keys if expression != f'"{name}"']
    conditions = []
    if since:
        conditions.append("started_at >= $since::timestamptz")
    if until:
        conditions.append("started_at < $until::timestamptz")
    if where:
        conditions.append(f"({where}\n)")
    filtered = f" where {' and '.join(conditions)}" if conditions else ""
    return f"select *{''.join(', ' + item for item in taken)} from requests{filtered}"


def _contrast_parts(names: list[str], metric: MetricRow, lever: str) -> list[str]:
    """Net ITL: treated against control inside each block and stratum, control's time weighted as treated's tokens are."""
    counted = metric_sql.counts(metric)
    setting = f"levers['{lever}']"
    by_setting = f"case when lower({setting}) in ({OFF}) then 'disabled_in_place' when {setting} is not null then 'treated' end"
    arm = f"coalesce(arms['{lever}'], {by_setting})"
    gaps = f"sum({metric_sql.arithmetic(metric.denominator)}) filter (where {counted})"
    strata = [column for column in STRATUM if f'"{column}"' not in names]
    stratum = ", ".join([*names, f"time_bucket(to_seconds({BLOCK_S}), started_at) as block", *strata])
    sums = (
        f"count(*) filter (where {counted}) as n, sum(decode_s) filter (where {counted}) as busy_s, "
        f"{gaps} as gaps, avg(ttft_s) as mean_ttft_s"
    )
    same = " and ".join(f"t.{column} is not distinct from c.{column}" for column in [*names, "block", *strata])
    keys = "".join(f"t.{name}, " for name in names)
    extra = "t.n * greatest(0, coalesce(t.mean_ttft_s - c.mean_ttft_s, 0))"
    pairs = (
        f"select {keys}t.n, t.busy_s + {extra} as net_s, t.gaps, t.gaps * c.busy_s / nullif(c.gaps, 0) as control_s, "
        "c.gaps > 0 as is_matched from (select * from arms where arm = 'treated' and gaps > 0) t "
        f"left join (select * from arms where arm = 'control') c on {same}"
    )
    matched = "filter (where is_matched)"
    treated = (
        f"select {''.join(f'{name}, ' for name in names)}sum(n) as treated_n, sum(n) {matched} as matched_n, "
        f"sum(net_s) / sum(gaps) as treated_itl_s, 1 - sum(net_s) {matched} / sum(control_s) {matched} as gain "
        "from pairs group by all"
    )
    every = (
        f"select {''.join(f'{name}, ' for name in names)}sum(decode_s) filter (where {counted}) "
        f"/ {gaps} as every_itl_s, count(*) filter (where {counted}) as n, "
        f"count(*) filter (where {metric_sql.known(metric)}) / nullif(count(*), 0) as coverage, "
        f"{metric_sql.said_columns(metric)[2]} from base group by all"
    )
    joined = " and ".join(f"every_request.{name} is not distinct from treated.{name}" for name in names) or "true"
    net = (
        f"select every_request.* rename ({metric.name}_provenance as said), gain, treated_n, matched_n, "
        "treated_itl_s, case when matched_n > 0 then 'control' when n > 0 then 'tpot' end as net_itl_basis "
        f"from every_request left join treated on {joined}"
    )
    return [
        f"arms as (select {stratum}, {arm} as arm, {sums} from base group by all)",
        f"pairs as ({pairs})",
        f"treated as ({treated})",
        f"every_request as ({every})",
        f"net as ({net})",
    ]


def _contrast_items(metric: MetricRow) -> str:
    on_control = "net.net_itl_basis = 'control'"
    if metric.name == "net_itl_gain":
        return (
            "net.gain as net_itl_gain, coalesce(net.matched_n, 0)::bigint as net_itl_gain_n, "
            "net.matched_n / nullif(net.treated_n, 0) as net_itl_gain_coverage, "
            "case when net.gain is not null then 'derived' end as net_itl_gain_provenance"
        )
    return (
        f"case when {on_control} then net.treated_itl_s else net.every_itl_s end as {metric.name}, "
        f"coalesce(case when {on_control} then net.treated_n else net.n end, 0)::bigint as {metric.name}_n, "
        f"net.coverage as {metric.name}_coverage, net.said as {metric.name}_provenance"
    )


def _ordered(metrics: Sequence[MetricRow]) -> list[tuple[str, MetricRow]]:
    found: list[tuple[str, MetricRow]] = []
    for metric in metrics:
        tags = [f"{metric.name}_{tag}" for tag, _ in metric_sql.QUANTILES] if metric.kind == "quantile" else [metric.name]
        found += [(f'"{name}"', metric) for name in [*tags, *(f"{metric.name}_{said}" for said in ("n", "coverage", "provenance"))]]
    return found


def _columns(names: list[str], metrics: Sequence[MetricRow], order: list[str]) -> str:
    has_contrast = any(metric.kind == "contrast" for metric in metrics)
    return ", ".join([*names, "requests", *order, *(["net_itl_basis"] if has_contrast else [])])


def _order(names: list[str]) -> str:
    times = [name for name in names if name in ('"hour"', '"day"')]
    return " order by " + ", ".join([*times, "requests desc", *(name for name in names if name not in times)])


def _question(parts: list[str], select: str, since: datetime | None, until: datetime | None) -> Question:
    params = {name: value for name, value in (("since", since), ("until", until)) if value is not None}
    return Question(f"with {', '.join(parts)} {select}", params)
