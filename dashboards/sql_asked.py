"""The URL of the SQL page in, the statement that it asks and its answer out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from dashboards.page import Asked
from queries import question_values, saved_questions
from queries.question_values import Parameter
from queries.questions import Question
from queries.results import SqlResult
from queries.sandbox import Sandbox, SqlError

SHOWN_ROWS = 1_000
MOST_ROWS = 5_000  # of an answer on the page, and of a chart; files hold more
OF_PARAMETERS = "p."


class StatementLimitError(ValueError):
    """The URL's `limit` is none."""


@dataclass(frozen=True)
class Statement:
    """What a URL asks: a text, the parameters that stand in it, what the URL says of them, and the saved question that it comes from."""

    sql: str
    parameters: tuple[Parameter, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    question: Question | None = None
    limit_rows: int = SHOWN_ROWS

    @property
    def unfilled(self) -> list[str]:
        """Parameters that nobody gave a value: of a saved question none, it has defaults."""
        known = {one.name for one in self.question.parameters} if self.question else set()
        return [one.name for one in self.parameters if one.name not in known and one.name not in self.texts]

    @property
    def is_edited(self) -> bool:
        """Whether its text is another than that of the question it comes from."""
        return self.question is not None and self.question.sql != self.sql

    @property
    def query(self) -> dict[str, str]:
        """The URL's query that asks it again."""
        named = {"question": self.question.name} if self.question else {}
        text = {} if self.question and not self.is_edited else {"sql": self.sql}
        limit = {} if self.limit_rows == SHOWN_ROWS else {"limit": str(self.limit_rows)}
        return {**named, **text, **{f"{OF_PARAMETERS}{name}": value for name, value in self.texts.items()}, **limit}

    def url(self, path: str = "sql", **more: str) -> str:
        """A link that asks it again; `more` is added to its query."""
        return f"{path}?{urlencode({**self.query, **more})}"


def stated(asked: Asked) -> Statement | None:
    """The statement of a URL; None where it has none.

    Raises:
        UnknownInvestigationError, StatementLimitError: it names what is not there, or a limit that is none.
    """
    name, text = asked.query.get("question", "").strip(), asked.query.get("sql", "").strip().replace("\r\n", "\n")
    question = saved_questions.find(asked.reader, name) if name else None
    sql = text or (question.sql if question else "")
    if not sql:
        return None
    of_question = {one.name: one for one in question.parameters} if question else {}
    parameters = tuple(of_question.get(one, Parameter(one)) for one in question_values.names(sql))
    given = {key.removeprefix(OF_PARAMETERS): value for key, value in asked.query.items() if key.startswith(OF_PARAMETERS)}
    taken = {one.name for one in parameters}
    return Statement(sql, parameters, {key: value for key, value in given.items() if key in taken}, question, _limit(asked.query))


def answered(asked: Asked, statement: Statement, run_id: str | None = None, limit_rows: int | None = None) -> SqlResult:
    """The answer to a statement, within the server's limits.

    Raises:
        SqlError, ParameterError: it has none; says why.
    """
    if asked.sandbox is None:
        msg = "SQL is not answered here"
        raise SqlError(msg, "refused")
    return run(asked.sandbox, statement, values(asked, statement), run_id, limit_rows)


def values(asked: Asked, statement: Statement) -> dict[str, Any]:
    """The values of a statement's parameters. Raises ParameterError."""
    return question_values.values(statement.parameters, statement.texts, asked.now)


def run(sandbox: Sandbox, statement: Statement, params: Mapping[str, Any], run_id: str | None, limit_rows: int | None) -> SqlResult:
    """The answer of a sandbox. Raises SqlError."""
    return sandbox.run(statement.sql, params, limit_rows or statement.limit_rows, run_id=run_id)


def runs_by_itself(headers: Mapping[str, str]) -> bool:
    """Whether a URL may run its statement unasked: not where another site led a browser here without anybody's click."""
    site, by_user = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-user")
    is_navigation = headers.get("sec-fetch-mode", "navigate") == "navigate"
    return site in ("none", "same-origin") or (by_user == "?1" and is_navigation)


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", "").strip()
    if not text:
        return SHOWN_ROWS
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= MOST_ROWS):
        msg = f"limit {text[:40]!r}: 1 to {MOST_ROWS:,} rows are taken here, more in the files"
        raise StatementLimitError(msg)
    return int(text)
