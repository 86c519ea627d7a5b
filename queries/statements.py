"""A stranger's SQL text in, an answer out: is it one statement that only reads?"""

from __future__ import annotations

import json
import re
from typing import Any

import duckdb

TAKEN = "one SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE or SHOW, or EXPLAIN of one of these"
_SPOKEN = {"MULTI": "PIVOT without an IN list", "LOAD": "INSTALL or LOAD"}
_READING = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_COMMENT = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_EXPLAIN = re.compile(rf"{_COMMENT}*explain\b{_COMMENT}*(?:analyze\b)?(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_OPTIONS = re.compile(rf"{_COMMENT}*\([^()']*\)(?P<rest>.*)", re.DOTALL)


class StatementError(ValueError):
    """The text is not one statement that only reads."""


def check(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raises StatementError if the text may do more than read, duckdb.ParserException if it is not SQL."""
    statement = _only(connection, sql)
    if statement.type == duckdb.StatementType.EXPLAIN:
        _check_explained(connection, sql)
    else:
        _check_reading(connection, statement)


def _only(connection: duckdb.DuckDBPyConnection, sql: str) -> Any:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        msg = f"{len(statements) or 'no'} statements came, one is taken"
        raise StatementError(msg)
    return statements[0]


def _check_explained(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """EXPLAIN has one statement type whatever it explains, and EXPLAIN ANALYZE runs it."""
    match = _EXPLAIN.match(sql)
    for text in _readings_of(match["rest"] if match else ""):
        try:
            statement = _only(connection, text)
        except duckdb.ParserException:
            continue
        return _check_reading(connection, statement)
    msg = "EXPLAIN of something that is no query is not taken"
    raise StatementError(msg)


def _readings_of(rest: str) -> list[str]:
    """What may follow EXPLAIN: a query, which may begin with a parenthesis, or options in parentheses and then a query."""
    options = _OPTIONS.match(rest)
    return [rest, options["rest"]] if options else [rest]


def _check_reading(connection: duckdb.DuckDBPyConnection, statement: Any) -> None:
    """A CTE may hold INSERT, UPDATE, DELETE and COPY ... TO in DuckDB 2, and the whole is still typed SELECT: look at every node."""
    if statement.type != duckdb.StatementType.SELECT:
        msg = f"{_SPOKEN.get(statement.type.name, statement.type.name)} is not taken: ad-hoc SQL only reads"
        raise StatementError(msg)
    row = connection.execute("select json_serialize_sql($text::varchar)", {"text": statement.query}).fetchone()
    tree = json.loads(row[0]) if row else {"error": True}
    if tree["error"]:
        msg = f"this query cannot be checked: {tree.get('error_message', 'no reason given')}"
        raise StatementError(msg)
    for kind in sorted(_query_nodes(tree) - _READING):
        msg = f"{kind.removesuffix('_NODE').removesuffix('_QUERY')} inside a query is not taken: ad-hoc SQL only reads"
        raise StatementError(msg)


def _query_nodes(tree: Any) -> set[str]:
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting.extend(node.values())
            if "cte_map" in node:
                found.add(str(node.get("type")))
        elif isinstance(node, list):
            waiting.extend(node)
    return found
