"""Metric rows in, their arithmetic as Polars expressions out; `queries/metric_sql.py` turns the same text into SQL."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable

import polars as pl

from pipeline.metric_row import Metric
from queries import metric_sql, metric_text

_BINARY: dict[type[ast.AST], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.And: operator.and_,
    ast.Or: operator.or_,
}


@functools.cache
def expression(text: str) -> pl.Expr:
    """A metric's arithmetic as a Polars expression, over columns as floats: whole numbers of a sender could overflow.

    Raises:
        ExpressionError: names the text and the part that is not taken.
    """
    return _expression(metric_text.tree(text))


@functools.cache
def columns_of(metric: Metric) -> tuple[str, ...]:
    """The columns of `requests`, and the virtual ones, that a metric reads, sorted."""
    return tuple(metric_sql.columns_of(metric))


def is_known(metric: Metric) -> pl.Expr:
    """Whether a request has every input of a metric: no part of its arithmetic is null, where `false and null` is false."""
    texts = [text for text in (metric.numerator, metric.denominator, metric.times, metric.known_when) if text]
    columns = {name for text in texts if is_strict(text) for name in metric_text.columns(text)}
    parts = [expression(text).is_not_null() for text in texts if not is_strict(text)]
    level = {metric.across} if metric.across else set()
    known = [*(pl.col(name).is_not_null() for name in sorted(columns | level)), *parts]
    return pl.all_horizontal(known) if known else pl.lit(True)


@functools.cache
def is_strict(text: str) -> bool:
    """Whether a text is null exactly where one of its columns is, as far as its form says so."""
    nodes = list(ast.walk(metric_text.tree(text)))
    is_other = any(isinstance(node, ast.BoolOp | ast.Call | ast.Subscript | ast.Div) for node in nodes)
    return not is_other and not any(isinstance(node, ast.Constant) and node.value is None for node in nodes)


def counts(metric: Metric) -> pl.Expr:
    """Whether a request counts for a metric: its inputs are known and `known_when` holds."""
    return is_known(metric) & expression(metric.known_when) if metric.known_when else is_known(metric)


def _expression(node: ast.expr) -> pl.Expr:
    if isinstance(node, ast.Name):
        return pl.col(node.id).cast(pl.Float64)
    if isinstance(node, ast.Constant):
        return pl.lit(node.value, pl.Float64)
    if isinstance(node, ast.Subscript):
        column, place = metric_text.element(node)
        return pl.col(column).list.get(place - 1, null_on_oob=True).cast(pl.Float64)
    if isinstance(node, ast.BinOp):
        return _binary(node)
    if isinstance(node, ast.BoolOp):
        return functools.reduce(_BINARY[type(node.op)], map(_expression, node.values))
    if isinstance(node, ast.Compare):
        sides = (node.left, node.comparators[0])
        of = _plain if any(map(metric_text.is_text, sides)) else _expression
        return _BINARY[type(node.ops[0])](*map(of, sides))
    if isinstance(node, ast.Call):
        return _function(node)
    raise metric_text.refusal(node, ast.unparse(node))


def _binary(node: ast.BinOp) -> pl.Expr:
    left, right = _expression(node.left), _expression(node.right)
    if isinstance(node.op, ast.Div):
        return left / (right if isinstance(node.right, ast.Constant) else pl.when(right != 0.0).then(right))
    return _BINARY[type(node.op)](left, right)


def _function(node: ast.Call) -> pl.Expr:
    """`floor`, and the lesser or greater of two: `min_horizontal` and `max_horizontal` would pass over a null."""
    parts = [_expression(part) for part in node.args]
    if len(parts) == 1:
        return parts[0].floor()
    left, right = parts
    is_left = left <= right if ast.unparse(node.func) == "min" else left >= right
    return pl.when(is_left).then(left).when(is_left.not_()).then(right)


def _plain(side: ast.expr) -> pl.Expr:
    """A side of a comparison with a text: the column as it is."""
    return pl.col(side.id) if isinstance(side, ast.Name) else pl.lit(ast.literal_eval(side))
