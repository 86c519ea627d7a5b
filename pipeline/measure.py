"""Rows of `requests` in, rows of `cells` out: the additive sums of every metric per judging segment, lever, arm, replica, block.

`expression` turns a metric row's arithmetic into Polars; `queries/metric_sql.py` turns the same text into SQL.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable

import polars as pl

from pipeline import segments
from pipeline.metrics import METRICS, Metric

BLOCK_S = 300
OFF_SETTINGS = ("off", "none", "0", "disabled", "false")
CELL_KEYS = ("segment", "lever", "arm", "replica", "block_started_at")
REQUESTS = "requests"  # the pseudo-metric that counts a cell's requests, known or not

_BINARY: dict[type[ast.AST], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.And: operator.and_,
    ast.Or: operator.or_,
}


class ExpressionError(ValueError):
    """A metric row's arithmetic uses something that Polars and SQL do not both know."""


@functools.cache
def expression(text: str) -> pl.Expr:
    """A metric's arithmetic as a Polars expression, over columns as floats: whole numbers of a sender could overflow.

    Raises:
        ExpressionError: names the text and the part that is not taken.
    """
    return _expression(ast.parse(text, mode="eval").body, text)


@functools.cache
def columns_of(metric: Metric) -> tuple[str, ...]:
    """The columns of `requests` a metric reads, sorted."""
    texts = [text for text in (metric.numerator, metric.denominator, metric.known_when) if text]
    return tuple(sorted({name for text in texts for name in expression(text).meta.root_names()}))


def is_known(metric: Metric) -> pl.Expr:
    """Whether a request has every input of a metric."""
    return pl.all_horizontal([pl.lit(True), *(pl.col(column).is_not_null() for column in columns_of(metric))])


def counts(metric: Metric) -> pl.Expr:
    """Whether a request counts for a metric: its inputs are known and `known_when` holds."""
    return is_known(metric) & expression(metric.known_when) if metric.known_when else is_known(metric)


def cells(requests: pl.DataFrame) -> pl.DataFrame:
    """One row per judging segment, lever, arm, replica, block and metric (columns of the table `cells`)."""
    measured = [metric for metric in METRICS if metric.kind != "contrast"]
    frames = []
    for lever, rows in _by_lever(requests):
        keyed = rows.with_columns(pl.lit(lever).alias("lever"), pl.col("started_at").dt.truncate(f"{BLOCK_S}s").alias("block_started_at"))
        keyed = _with_segment(keyed, segments.keys_for(lever))
        counted = keyed.group_by(CELL_KEYS).agg(pl.len().cast(pl.Int64).alias("n"))
        zeros = [pl.lit(0.0).alias(name) for name in ("num", "den", "num_sq", "den_sq", "num_den")]
        frames.append(counted.with_columns(pl.lit(REQUESTS).alias("metric"), *zeros))
        frames.extend(_sums(keyed, metric) for metric in measured)
    columns = [*CELL_KEYS, "metric", "n", "num", "den", "num_sq", "den_sq", "num_den"]
    return pl.concat([frame.select(columns) for frame in frames]) if frames else pl.DataFrame()


def _sums(keyed: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    num, den = pl.col("num"), pl.col("den")
    known = keyed.filter(counts(metric)).with_columns(
        expression(metric.numerator).cast(pl.Float64).alias("num"), expression(metric.denominator).cast(pl.Float64).alias("den")
    )
    sums = known.group_by(CELL_KEYS).agg(
        pl.len().cast(pl.Int64).alias("n"),
        num.sum(),
        den.sum(),
        (num * num).sum().alias("num_sq"),
        (den * den).sum().alias("den_sq"),
        (num * den).sum().alias("num_den"),
    )
    return sums.with_columns(pl.lit(metric.name).alias("metric"))


def _by_lever(requests: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The requests under each lever that their arms or settings name, with their `arm`; names that senders made up are left out."""
    marked = requests.with_columns(_pairs("arms"), _pairs("levers"))
    arm_of = marked.select("row", pl.col("arms")).explode("arms").drop_nulls().unnest("arms").rename({"key": "lever", "value": "arm"})
    setting_of = marked.select("row", pl.col("levers")).explode("levers").drop_nulls().unnest("levers").rename({"key": "lever"})
    both = setting_of.join(arm_of, on=["row", "lever"], how="full", coalesce=True)
    off = pl.col("value").str.to_lowercase().is_in(list(OFF_SETTINGS))
    by_setting = pl.when(off).then(pl.lit("disabled_in_place")).otherwise(pl.lit("treated"))
    both = both.with_columns(pl.coalesce("arm", by_setting).alias("arm")).select("row", "lever", "arm")
    both = both.filter(pl.col("arm").is_in(segments.ARMS))
    named = set(both["lever"].to_list())
    levers = [lever for lever in segments.LEVERS if lever in named]
    return [(lever, requests.join(both.filter(pl.col("lever") == lever).drop("lever"), on="row")) for lever in levers]


def _pairs(column: str) -> pl.Expr:
    """A map column as a list of key/value pairs."""
    return pl.col(column).cast(pl.List(pl.Struct({"key": pl.String, "value": pl.String})))


def _with_segment(requests: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    requests = requests.filter(pl.any_horizontal(pl.col(key).is_not_null() for key in keys))  # `{}` would be all traffic
    distinct = requests.select(keys).unique()
    named = distinct.with_columns(pl.Series("segment", [segments.canonical(row) for row in distinct.to_dicts()], dtype=pl.String))
    return requests.join(named, on=list(keys), nulls_equal=True)


def _expression(node: ast.expr, text: str) -> pl.Expr:
    if isinstance(node, ast.Name):
        return pl.col(node.id).cast(pl.Float64)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return pl.lit(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_expression(node.left, text), _expression(node.right, text))
    if isinstance(node, ast.BoolOp):
        return functools.reduce(_BINARY[type(node.op)], [_expression(value, text) for value in node.values])
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _BINARY:
        return _BINARY[type(node.ops[0])](*(_side(side, node, text) for side in (node.left, node.comparators[0])))
    msg = f"metric arithmetic {text!r}: {ast.unparse(node)!r} is not taken; columns, numbers, texts, + - * /, comparisons, and, or are"
    raise ExpressionError(msg)


def _side(side: ast.expr, comparison: ast.Compare, text: str) -> pl.Expr:
    """One side of a comparison; a column that is compared with a text stays as it is."""
    has_text = any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in (comparison.left, *comparison.comparators))
    return pl.col(side.id) if has_text and isinstance(side, ast.Name) else _expression(side, text)
