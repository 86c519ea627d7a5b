"""Keys, columns, a period and sources in, the tables `requests` are reported from out: the rows, what they cost, and the time they span."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from queries import metric_sql, provenance_digits
from queries.metric_sql import MetricRow
from queries.report_parts import inputs, words

PRICE = "usd_per_gpu_s"
_PRICES = (
    "prices_until as (select hardware, since, lead(since, 1, 'infinity') over (partition by hardware order by since) as until, {price} "
    "from (select hardware, coalesce(from_time, '-infinity') as since, max(usd_per_gpu_hour) / 3600 as {price} from prices group by all))"
)


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of `requests` as a relation or a query in brackets, whether they carry the digits of their provenance, and which these are.

    `texts` is empty where they are many.
    """

    sql: str
    has_digits: bool = False
    texts: tuple[str, ...] = ()


REQUESTS = (Source("requests"),)


def rows(
    keys: Sequence[tuple[str, str]], metrics: Sequence[MetricRow], more: Iterable[str], conditions: str, sources: Sequence[Source]
) -> list[str]:
    """The table `rows`: keys under their names, the columns that metrics read, `more` of them, and where each metric's inputs come from."""
    needed = {column for metric in metrics if metric.numerator for column in metric_sql.read_columns(metric)}
    virtual = needed & set(metric_sql.VIRTUAL_COLUMNS)
    needed |= set(more) | ({"hardware", "started_at"} if virtual else set())
    named = {name for name, _ in keys}
    columns = [f'{expression} as "{name}"' for name, expression in keys] + sorted(needed - virtual - named)
    branches = " union all ".join(_branch(columns, metrics, conditions, source) for source in sources)
    if not virtual:
        return [f"rows as not materialized ({branches})"]
    return [_PRICES.format(price=PRICE), f"unpriced as not materialized ({branches})", f"rows as not materialized ({_priced()})"]


def period(conditions: str, sources: Sequence[Source], since: str, until: str) -> str:
    """A query for the time that what is stored in a period spans, all of it, whatever else was asked for."""
    filtered = f" where {conditions}" if conditions else ""
    stored = " union all ".join(f"select started_at, ended_at from {source.sql}{filtered}" for source in sources)
    began = f"greatest(min(started_at), {since})" if since else "min(started_at)"
    ended = f"least(max(ended_at), {until})" if until else "max(ended_at)"
    return f"select {began} as since, {ended} as until from ({stored})"


def _branch(columns: Sequence[str], metrics: Sequence[MetricRow], conditions: str, source: Source) -> str:
    said = [
        f"{provenance_digits.word([inputs(metric) for metric in told], has_digits=source.has_digits, texts=source.texts)} as {column}"
        for column, told in words(metrics)
    ]
    filtered = f" where {conditions}" if conditions else ""
    read = [inputs(metric) for metric in metrics if metric.numerator]
    told = sorted({column for some in read if not provenance_digits.is_told(some, source.has_digits) for column in some})
    sql = provenance_digits.numbered(source.sql, told) if told else source.sql
    return f"select {', '.join([*columns, *said]) or '1 as one'} from {sql}{filtered}"


def _priced() -> str:
    """Each row with what its hardware cost as of its start: the price of its own name, else that of any hardware."""
    found = [
        f"left join prices_until as {name} on {name}.hardware = {of} and started_at >= {name}.since and started_at < {name}.until"
        for name, of in (("own_price", "unpriced.hardware"), ("any_price", "''"))
    ]
    return f"select unpriced.*, coalesce(own_price.{PRICE}, any_price.{PRICE}) as {PRICE} from unpriced {' '.join(found)}"
