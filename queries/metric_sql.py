"""Metric rows in, SQL over `requests` out. The same text of arithmetic is read by `pipeline/measure.py` as Polars.

Each column is cast to double before anything is worked out: whole numbers of a sender near 2^63 would overflow and fail the statement.
"""

from __future__ import annotations

import ast
import functools
from typing import Protocol

QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


class MetricRow(Protocol):
    """What is read of a metric's row."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def numerator(self) -> str: ...
    @property
    def denominator(self) -> str: ...
    @property
    def known_when(self) -> str: ...


def columns_of(metric: MetricRow) -> list[str]:
    """The columns of `requests` a metric reads, sorted."""
    names = set()
    for text in (metric.numerator, metric.denominator, metric.known_when):
        if text:
            names |= {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}
    return sorted(names)


@functools.cache
def arithmetic(text: str) -> str:
    """A metric's arithmetic as SQL, over columns as doubles; a column that is compared with a text stays as it is."""
    return ast.unparse(_AsDoubles().visit(ast.parse(text, mode="eval")))


class _AsDoubles(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(f"{node.id}::double")

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        sides = (node.left, *node.comparators)
        has_text = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides)
        return node if has_text else self.generic_visit(node)


def known(metric: MetricRow) -> str:
    """Whether a request has every input."""
    return " and ".join(f"{column} is not null" for column in columns_of(metric)) or "true"


def counts(metric: MetricRow) -> str:
    """Whether a request counts: its inputs are known and `known_when` holds."""
    return f"{known(metric)} and ({arithmetic(metric.known_when)})" if metric.known_when else known(metric)


def value_columns(metric: MetricRow) -> list[str]:
    """The select items of a metric's values: one, or one a percentile."""
    where = f"filter (where {counts(metric)})"
    if metric.kind == "quantile":
        return [f"quantile_cont({arithmetic(metric.numerator)}, {share}) {where} as {metric.name}_{tag}" for tag, share in QUANTILES]
    numerator = f"sum(cast({arithmetic(metric.numerator)} as double)) {where}"
    if metric.kind in ("mean", "share"):
        return [f"{numerator} / nullif(count(*) {where}, 0) as {metric.name}"]
    return [f"{numerator} / nullif(sum(cast({arithmetic(metric.denominator)} as double)) {where}, 0) as {metric.name}"]


def said_columns(metric: MetricRow) -> list[str]:
    """The select items that say how the value was got: n, coverage, provenance."""
    inputs = [column for column in columns_of(metric) if column != "outcome"]
    listed = ", ".join(f"provenance['{column}']" for column in inputs)
    return [
        f"count(*) filter (where {counts(metric)}) as {metric.name}_n",
        f"count(*) filter (where {known(metric)}) / nullif(count(*), 0) as {metric.name}_coverage",
        f"{_provenance(listed, counts(metric))} as {metric.name}_provenance",
    ]


def _provenance(listed: str, condition: str) -> str:
    if not listed:
        return f"case when count(*) filter (where {condition}) > 0 then 'span' end"
    every = f"flatten(list(distinct list_distinct([{listed}])) filter (where {condition}))"
    return f"nullif(array_to_string(list_sort(list_distinct({every})), '+'), '')"
