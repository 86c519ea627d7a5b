"""The text of a metric's arithmetic in, SQL out; `queries/metric_text.py` says what is taken and what null does to it."""

from __future__ import annotations

import ast
import functools

from queries import metric_text

_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Eq: "==", ast.NotEq: "!=", ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip


@functools.cache
def arithmetic(text: str) -> str:
    """A metric's arithmetic as SQL, over columns as doubles; a column that is compared with a text stays as it is.

    Raises:
        ExpressionError: names the text and the part that is not taken.
    """
    return _sql(metric_text.tree(text))


@functools.cache
def not_null(*texts: str) -> tuple[str, ...]:
    """The conditions under which none of these texts is null, as SQL that is never null: of columns alone where that says it all.

    Raises:
        ExpressionError: as `arithmetic`.
    """
    trees = [metric_text.tree(text) for text in texts]
    found = {condition for tree in trees if not isinstance(tree, ast.BoolOp) for condition in _conditions(tree)}
    for choice in trees:
        if isinstance(choice, ast.BoolOp):  # what is known in every part is known as a whole, and cheaper to ask
            inside = {condition for part in choice.values for condition in _conditions(part)}
            found.update(() if inside <= found else _conditions(choice))
    return tuple(sorted(found))


def _sql(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return f"{node.id}::double"
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.Subscript):
        return f"{_element(node)}::double"
    if isinstance(node, ast.BinOp):
        left, right = _inside(node.left), _inside(node.right)
        if isinstance(node.op, ast.Div):
            return f"{left} / nullif({_sql(node.right)}, 0)"
        return f"{left} {_SIGNS[type(node.op)]} {right}"
    if isinstance(node, ast.BoolOp):
        return f" {_SIGNS[type(node.op)]} ".join(_inside(value) for value in node.values)
    if isinstance(node, ast.Compare):
        sides = (node.left, node.comparators[0])
        left, right = map(ast.unparse, sides) if any(map(metric_text.is_text, sides)) else map(_inside, sides)
        return f"{left} {_SIGNS[type(node.ops[0])]} {right}"
    if isinstance(node, ast.Call):
        return _function(node)
    raise metric_text.refusal(node, ast.unparse(node))


def _function(node: ast.Call) -> str:
    """`floor`, and the lesser or greater of two: `least` and `greatest` would pass over a null."""
    name = ast.unparse(node.func)
    if name == "floor":
        return f"floor({_sql(node.args[0])})"
    left, right = map(_inside, node.args)
    first, second = ("<=", ">") if name == "min" else (">=", "<")
    return f"case when {left} {first} {right} then {left} when {left} {second} {right} then {right} end"


def _constant(value: object) -> str:
    """A number as a double or a whole number: with a point alone DuckDB would work in decimals, and overflow."""
    if value is None:
        return "null::double"
    return str(value) if type(value) is int or "e" in repr(value) else f"{value!r}e0"


def _element(node: ast.Subscript) -> str:
    column, place = metric_text.element(node)
    return f"{column}[{place}]"


def _inside(node: ast.expr) -> str:
    is_alone = isinstance(node, ast.Name | ast.Constant | ast.Subscript) or (
        isinstance(node, ast.Call) and ast.unparse(node.func) == "floor"
    )
    return _sql(node) if is_alone else f"({_sql(node)})"


def _conditions(node: ast.expr) -> list[str]:
    """What must hold for a part not to be null: of each column, where any null makes it null; else of the part as a whole."""
    if isinstance(node, ast.Name):
        return [f"{node.id} is not null"]
    if isinstance(node, ast.Subscript):
        return [f"{_element(node)} is not null"]
    if isinstance(node, ast.Constant):
        return ["false"] if node.value is None else []
    if isinstance(node, ast.BoolOp):
        parts = [sorted(_conditions(value)) for value in node.values]
        return parts[0] if all(part == parts[0] for part in parts) else [f"({_sql(node)}) is not null"]
    if isinstance(node, ast.Compare):
        return [condition for side in (node.left, node.comparators[0]) for condition in _conditions(side)]
    if isinstance(node, ast.Call):
        return [condition for part in node.args for condition in _conditions(part)]
    if isinstance(node, ast.BinOp):
        divided = [f"{_inside(node.right)} != 0"] if isinstance(node.op, ast.Div) and not isinstance(node.right, ast.Constant) else []
        return [*_conditions(node.left), *_conditions(node.right), *divided]
    raise metric_text.refusal(node, ast.unparse(node))
