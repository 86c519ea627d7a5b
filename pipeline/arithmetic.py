"""Metric rows in, their arithmetic as Polars expressions out; `queries/metric_sql.py` turns the same text into SQL."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable

import polars as pl

from pipeline.metrics import Metric

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
