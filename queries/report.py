"""Metric rows, keys and a period in, one SQL statement over `requests` out: the report. Nothing here runs it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from queries import metric_sql, report_contrast, report_degrees, report_levels, report_plain, report_quality, report_rates, report_rows
from queries.metric_sql import MetricRow
from queries.report_parts import Part, matched
from queries.report_rows import REQUESTS, Source

COMPUTED_KEYS = {"hour": "date_trunc('hour', started_at)", "day": "date_trunc('day', started_at)"}
OFF = report_contrast.OFF
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
    sources: Sequence[Source] = REQUESTS,
    *,
    is_counted: bool = False,
) -> Question:
    """One row per segment: the keys, `requests`, then each metric's value, n, coverage and provenance.

    `columns` are those of `requests`; `where` is a stranger's text: such a statement may only be run by `queries.sandbox`. `lever` is whose
    arms contrasts compare. A label's word is null here: it is made of the row (`pipeline/bottleneck.py`).

    Where it `is_counted`, requests were added up by segment into a table `counted` (`queries.report_plain`), and metrics need nothing else.

    Times are parameters cast where they stand, so they may be given as text; nothing needs to be replaced in the statement afterwards.

    Raises:
        ReportError: an unknown key, a key or metric that came twice, or a key that is also a column of a metric that was asked for.
    """
    _refuse_repeats("key", by)
    _refuse_repeats("metric", [metric.name for metric in metrics])
    keys = [(name, _key(name, columns)) for name in by]
    names = [f'"{name}"' for name, _ in keys]
    asked = _Period(since, until)
    conditions = " and ".join([*asked.conditions("started_at"), *([f"({where}\n)"] if where else [])])
    found = [
        report_plain.plain(names, metrics, is_counted=is_counted),
        *report_levels.levels(names, metrics),
        report_rates.rates(names, metrics, report_rows.period(" and ".join(asked.conditions("started_at")), sources, *asked.ends)),
        report_contrast.contrasts(names, metrics, lever),
        report_degrees.degrees(names, metrics),
        report_quality.quality(names, metrics, " and ".join(asked.conditions("evaluated_at"))),
    ]
    parts = [part for part in found if part is not None]
    shown = _shown(metrics, parts)
    _refuse_clashes(by, shown)
    rows = [] if is_counted else report_rows.rows(keys, metrics, _more(metrics), conditions, sources)
    tables = [*rows, *(table for part in parts for table in part.tables)]
    items = [*(f"plain.{name}" for name in names), "plain.requests", *(f'{text} as "{name}"' for name, (text, _) in shown.items())]
    joins = "".join(f" left join {part.name} on {matched(names, 'plain', part.name)}" for part in parts[1:])
    select = f"select {', '.join(items)} from plain{joins}" + _order(names)
    return Question(f"with {', '.join(tables)} {select}", {} if is_counted else asked.params)


FIRST_YEAR, LAST_YEAR = 2, 9998
"""Of times that questions take: there is room for a day before and after."""


def moment(text: str, now: datetime) -> datetime:
    """A time from ISO 8601 (without an offset UTC) or an age before `now` such as `90m`, `24h`, `7d`.

    Raises:
        ReportError: neither.
    """
    age = re.fullmatch(r"(\d+)([smhd])", text.strip())
    try:
        found = now - timedelta(seconds=int(age[1]) * AGES_S[age[2]]) if age else datetime.fromisoformat(text.strip())
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ReportError(_not_taken(text)) from error
    if not FIRST_YEAR <= found.year <= LAST_YEAR:  # a day before the first time there is, or a block after the last, is none
        raise ReportError(_not_taken(text))
    return found


def _not_taken(text: str) -> str:
    return f"time {text[:40]!r}: ISO 8601 or an age such as 90m, 24h, 7d is taken, from year {FIRST_YEAR} to {LAST_YEAR} in UTC"


def _refuse_repeats(what: str, names: Sequence[str]) -> None:
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        msg = f"{what} {twice!r} came twice; each is taken once"
        raise ReportError(msg)


def _refuse_clashes(by: Sequence[str], shown: Mapping[str, tuple[str, str]]) -> None:
    """Two columns of one name cannot be told apart: not by a reader, and not by the statement."""
    for name in by:
        if name in shown:
            msg = f"key {name!r} is also a column of metric {shown[name][1]!r}: leave out one of them (a bucket may serve as key)"
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


def _shown(metrics: Sequence[MetricRow], parts: Sequence[Part]) -> dict[str, tuple[str, str]]:
    """What is shown, in the order in which metrics were asked for: SQL and the metric it is of, by column."""
    texts = {name: text for part in parts for name, text in part.shown.items()}
    shown = {name: (texts[name], metric.name) for metric in metrics for name in _columns_of(metric) if name in texts}
    return shown | {name: (text, "net_itl_s") for name, text in texts.items() if name not in shown}


def _columns_of(metric: MetricRow) -> list[str]:
    tags = ("", *(f"_{tag}" for tag, _ in metric_sql.QUANTILES), "_n", "_coverage", "_provenance", "_totals", "_evidence")
    return [f"{metric.name}{tag}" for tag in tags]


def _more(metrics: Sequence[MetricRow]) -> set[str]:
    """The columns of `requests` that a metric's kind reads, beside those of its arithmetic."""
    more: set[str] = set()
    for metric in metrics:
        more.update({"slope": ("started_at",), "rate": ("replica", "ended_at")}.get(metric.kind, ()))
        more.update(report_contrast.COLUMNS if metric.name in report_contrast.NAMES else ())
        more.update(report_degrees.COLUMNS if metric.name == report_degrees.NAME else ())
        more.update(report_quality.COLUMNS if metric.name == report_quality.NAME else ())
    return more


def _order(names: list[str]) -> str:
    times = [name for name in names if name in ('"hour"', '"day"')]
    order = [*times, "requests desc", *(name for name in names if name not in times)]
    return " order by " + ", ".join(f"plain.{name}" for name in order)


@dataclass(frozen=True, slots=True)
class _Period:
    """The period that is asked for."""

    since: datetime | None
    until: datetime | None

    @property
    def params(self) -> dict[str, Any]:
        return {name: value for name, value in (("since", self.since), ("until", self.until)) if value is not None}

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends as SQL; empty where there is none."""
        return ("$since::timestamptz" if self.since else "", "$until::timestamptz" if self.until else "")

    def conditions(self, column: str) -> list[str]:
        since, until = self.ends
        return [f"{column} {sign} {end}" for sign, end in ((">=", since), ("<", until)) if end]
