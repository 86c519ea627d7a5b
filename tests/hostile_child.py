"""The sandbox's child process, asked many statements one after the other: a job and statements as JSON on stdin, a code a line out.

A child of its own for each would take longer to start than all of them to answer. The limits, the lockdown and the code are the same.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import duckdb

from queries import sandbox_child


def main() -> None:
    """Reads, limits itself, answers each."""
    job, statements = json.load(sys.stdin)
    sandbox_child._limit(job)
    connection = sandbox_child._open(job)
    for statement in statements:
        sys.stdout.write(json.dumps(_answered(connection, {**job, "sql": statement})) + "\n")
        sys.stdout.flush()


def _answered(connection: duckdb.DuckDBPyConnection, job: dict[str, Any]) -> list[str]:
    try:
        _, table = sandbox_child._answer(connection, job)
        return ["answered", str(table.slice(0, 3).to_pylist())[:2000]]
    except sandbox_child.FAULTS as error:
        told = sandbox_child._told(error)
        return [told["code"], told["message"][:2000]]
    finally:
        with contextlib.suppress(duckdb.Error):  # what was refused began no transaction
            connection.execute("rollback")


if __name__ == "__main__":
    main()
