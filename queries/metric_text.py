"""The text of a metric's arithmetic in, its tree out: what SQL and Polars both know is taken, everything else refused.

Taken are columns, numbers, texts, `None` (not known of any request), + - * /, comparisons, and, or, `min(a, b)`, `max(a, b)`, `floor(a)`
and `list[j]`, j from 1. Null is what is not known: it goes through everything but `false and` and `true or`. Division by 0 is null, so is
an element beyond a list's end.
"""

from __future__ import annotations

import ast
import functools

NUMBERS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Gt, ast.GtE, ast.Lt, ast.LtE)
FUNCTIONS = {"min": 2, "max": 2, "floor": 1}
TAKEN = "columns, numbers, texts, + - * /, comparisons, and, or, min(a, b), max(a, b), floor(a), list[j] are"


class ExpressionError(ValueError):
    """A metric row's arithmetic uses something that Polars and SQL do not both know."""


@functools.cache
def tree(text: str) -> ast.expr:
    """The tree of a metric's arithmetic.

    Raises:
        ExpressionError: names the text and the part that is not taken.
    """
    try:
        parsed = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        msg = f"metric arithmetic {text!r}: it cannot be read ({error.msg}); {TAKEN} taken"
        raise ExpressionError(msg) from error
    _check(parsed, text, wanted="truth" if is_truth(parsed) else "number")
    return parsed


def columns(text: str) -> set[str]:
    """The columns that a text reads.

    Raises:
        ExpressionError: as `tree`.
    """
    parsed = tree(text)
    functions = {id(node.func) for node in ast.walk(parsed) if isinstance(node, ast.Call)}
    return {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name) and id(node) not in functions}


def refusal(node: ast.expr, text: str) -> ExpressionError:
    """The error that names a part of a text that is not taken."""
    return ExpressionError(f"metric arithmetic {text!r}: {ast.unparse(node)!r} is not taken; {TAKEN}")


def is_truth(node: ast.expr) -> bool:
    """Whether a part is true or false, and no number."""
    return isinstance(node, ast.BoolOp | ast.Compare)


def is_text(node: ast.expr) -> bool:
    """Whether a part is a text in quotes."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def element(node: ast.Subscript) -> tuple[str, int]:
    """The list's column of `list[j]`, and j; j = 0 where it is no such thing."""
    place = node.slice.value if isinstance(node.slice, ast.Constant) else 0
    is_place = isinstance(node.value, ast.Name) and type(place) is int and place >= 1
    return (ast.unparse(node.value), int(str(place))) if is_place else ("", 0)


def _check(node: ast.expr, text: str, wanted: str) -> None:
    """Refuses what is not taken where a number, a truth, or a side of a comparison is wanted."""
    parts: list[tuple[ast.expr, str]] | None = None
    if isinstance(node, ast.BoolOp):
        parts = [(value, "truth") for value in node.values] if wanted == "truth" else None
    elif isinstance(node, ast.Compare):
        parts = _sides(node) if wanted == "truth" else None
    elif wanted == "number":
        parts = _numbers(node)
    elif wanted == "truth" and isinstance(node, ast.Constant) and node.value is None:
        parts = []
    if parts is None:
        raise refusal(node, text)
    for part, kind in parts:
        _check(part, text, kind)


def _sides(node: ast.Compare) -> list[tuple[ast.expr, str]] | None:
    """The sides of one comparison, left to check; a text is compared with a column alone, for being equal or not."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], COMPARISONS):
        return None
    sides = [node.left, node.comparators[0]]
    if any(map(is_text, sides)):
        is_plain = isinstance(node.ops[0], ast.Eq | ast.NotEq) and sum(isinstance(side, ast.Name) for side in sides) == 1
        return [] if is_plain else None
    return [(side, "number") for side in sides]


def _numbers(node: ast.expr) -> list[tuple[ast.expr, str]] | None:
    """The numbers that a number is made of; None where it is none."""
    if isinstance(node, ast.Name):
        return []
    if isinstance(node, ast.Constant):
        return [] if node.value is None or type(node.value) in (int, float) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, NUMBERS):
        by_nothing = isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant) and not node.right.value
        return None if by_nothing else [(node.left, "number"), (node.right, "number")]
    if isinstance(node, ast.Subscript):
        return [] if element(node)[1] else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return [(part, "number") for part in node.args] if FUNCTIONS.get(node.func.id) == len(node.args) else None
    return None
