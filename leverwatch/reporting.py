"""Metrics, keys, a period and a condition in, the report over `requests` out: the sandbox runs a stranger's condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from pipeline import bottleneck, metrics, tally
from queries import conditions, report, report_sources
from queries.sandbox import Sandbox
from queries.store import Store


def from_requests(
    store: Store,
    sandbox: Sandbox,
    chosen: Sequence[metrics.Metric],
    by: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    where: str | None = None,
) -> pl.DataFrame:
    """One row per segment, columns as `queries.report` says.

    Raises:
        ReportError, SqlError: what was asked cannot be answered.
    """
    asked = (*chosen, *_inputs_of_labels(chosen, by))
    if where is None:
        with store.snapshot() as seen:
            columns = seen.frame("select * from requests limit 0").columns
            counted_by = report.report(asked, columns, by, since, until, is_counted=True)
            counted = tally.counted(store, seen, asked, by, since, until)
            if counted is None:
                question = report.report(asked, columns, by, since, until, sources=report_sources.sources(store, seen, since, until))
                frame = seen.frame(question.sql, question.params)
            else:
                seen.using(counted, "create temp table counted as select * from incoming")
                frame = seen.frame(counted_by.sql)
    else:
        if where and (fault := conditions.fault(where)):
            msg = f"where {where[:80]!r}: {fault}; one condition over columns of requests is taken"
            raise report.ReportError(msg)
        question = report.report(asked, store.frame("select * from requests limit 0").columns, by, since, until, where)
        frame = _sandboxed(sandbox, question)
    return _labeled(frame, asked[len(chosen) :]) if any(metric.kind == "label" for metric in chosen) else frame


def _sandboxed(sandbox: Sandbox, question: report.Question) -> pl.DataFrame:
    answer = sandbox.run(question.sql, {name: value.isoformat() for name, value in question.params.items()})
    if answer.truncated:
        msg = f"the report has more than {answer.row_count} segments, the most where `where` is given: name fewer keys or narrow it"
        raise report.ReportError(msg)
    return answer.frame()


def _inputs_of_labels(chosen: Sequence[metrics.Metric], by: Sequence[str]) -> list[metrics.Metric]:
    """What a label is made of and nobody asked for; a metric whose column is a key is left out."""
    if all(metric.kind != "label" for metric in chosen):
        return []
    asked = {metric.name for metric in chosen} | set(by)
    return [metrics.by_name()[name] for name in bottleneck.INPUTS if name not in asked]


def _labeled(frame: pl.DataFrame, unasked: Sequence[metrics.Metric]) -> pl.DataFrame:
    named = bottleneck.with_bottleneck(frame)
    hidden = [f"{metric.name}{said}" for metric in unasked for said in ("", "_n", "_coverage", "_provenance")]
    return named.drop(hidden)
