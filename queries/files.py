"""The `.sql` files of this package as text: numbered schema steps and named questions."""

from __future__ import annotations

import functools
from importlib import resources


class UnknownQuestionError(KeyError):
    """A question was asked for that no file holds."""


@functools.cache
def schema() -> list[tuple[int, str]]:
    """The schema steps in order, as (number, SQL)."""
    folder = resources.files("queries") / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text(encoding="utf-8")) for name in names]


@functools.cache
def question(name: str) -> str:
    """The text of `sql/<name>.sql`. Raises UnknownQuestionError with the known names."""
    path = resources.files("queries") / "sql" / f"{name}.sql"
    if not path.is_file():
        msg = f"queries/sql: question {name!r} is unknown; known: {', '.join(question_names())}"
        raise UnknownQuestionError(msg)
    return path.read_text(encoding="utf-8")


@functools.cache
def question_names() -> tuple[str, ...]:
    """The names of all `sql/*.sql` files, sorted."""
    folder = resources.files("queries") / "sql"
    return tuple(sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql")))
