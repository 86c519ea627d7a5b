"""The SQL page: a statement or a question's name in the URL, its answer as a table and a chart; what can be asked stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards import sql_asked, sql_chart, sql_table, templating
from dashboards.figure import Figure
from dashboards.page import Asked, Page
from dashboards.sql_asked import Statement
from dashboards.sql_table import Table
from pipeline.metrics import METRICS
from queries import described, saved_questions
from queries.question_values import ParameterError
from queries.questions import Question, investigations
from queries.results import SqlResult
from queries.sandbox import SqlError

FIRST = """
select model, count(*) as requests, quantile_cont(ttft_s, 0.95) as ttft_p95_s
from requests
where started_at >= now() - interval 24 hours
group by model
order by requests desc
""".strip()
MOST_CHARACTERS = 20_000  # a URL holds no more
FILES = ("csv", "json", "arrow", "parquet")


@dataclass(frozen=True)
class Failure:
    """Why there is no answer: a code, what is wrong, what to do, and its CSS class."""

    code: str
    message: str
    hint: str
    css: str = "bad"


@dataclass(frozen=True)
class Outcome:
    """What came of a URL: an answer, or why there is none; both are missing where nothing was asked."""

    statement: Statement | None = None
    result: SqlResult | None = None
    failure: Failure | None = None


def draw(asked: Asked) -> str:
    """The page as HTML. Raises ValueError for a question's name or a limit that is none."""
    came = _outcome(asked)
    statement, limits = came.statement, asked.sandbox.limits if asked.sandbox else None
    figure, refused = _figure(asked, came)
    return templating.render(
        "sql.html",
        asked=asked,
        statement=statement,
        question=statement.question if statement else None,
        text=statement.sql if statement else FIRST,
        result=came.result,
        table=_table(came),
        failure=came.failure or refused,
        figure=asked.drawn([figure])[0] if figure else None,
        drawn=sql_chart.offered(asked.query, came.result),
        numbers=sql_chart.numeric(came.result) if came.result else [],
        chart_kinds=sql_chart.KINDS,
        files=FILES,
        limits=limits,
        most_characters=MOST_CHARACTERS,
        most_rows=sql_asked.MOST_ROWS,
        shown_rows=sql_asked.SHOWN_ROWS,
        questions=_grouped((*investigations(), *saved_questions.listed(asked.reader))),
        relations=described.relations(asked.sandbox.columns) if asked.sandbox else [],
        metrics=METRICS,
        functions=described.functions(),
    )


def figures(asked: Asked) -> Sequence[Figure]:
    """The chart of the answer, where the URL chooses one."""
    figure, _ = _figure(asked, _outcome(asked))
    return [figure] if figure else []


def _outcome(asked: Asked) -> Outcome:
    statement = sql_asked.stated(asked)
    if statement is None:
        return Outcome()
    if statement.unfilled:
        needed = ", ".join(f"${name}" for name in statement.unfilled)
        return Outcome(statement, failure=Failure("waiting", f"{needed} need a value.", "Fill in the form above, then run.", "quiet"))
    if not sql_asked.runs_by_itself(asked.headers):
        said = "Another site led here, so this statement was not run by itself."
        return Outcome(statement, failure=Failure("waiting", said, "Read it, then press Run.", "warn"))
    try:
        return Outcome(statement, sql_asked.answered(asked, statement, asked.query.get("run")))
    except SqlError as error:
        return Outcome(statement, failure=Failure(error.code, error.message, error.hint))
    except ParameterError as error:
        return Outcome(statement, failure=Failure("invalid", str(error), ""))


def _table(came: Outcome) -> Table | None:
    if came.result is None or came.statement is None:
        return None
    return sql_table.table(came.result, None if came.statement.is_edited else came.statement.question)


def _figure(asked: Asked, came: Outcome) -> tuple[Figure | None, Failure | None]:
    """The chart that the URL chooses, or why there is none."""
    if came.result is None or came.statement is None:
        return None, None
    try:
        chosen = sql_chart.drawing(asked.query, came.result)
        if chosen is None:
            return None, None
        question = came.statement.question
        units = {column.name: column.unit for column in question.columns} if question else {}
        return sql_chart.figure(came.result, chosen, question.title if question else "The answer", units.get(chosen.y, "")), None
    except sql_chart.ChartError as error:
        return None, Failure("invalid", str(error), "choose others below")


def _grouped(questions: Sequence[Question]) -> list[tuple[str, list[Question]]]:
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(question.group, []).append(question)
    return list(groups.items())


PAGE = Page("/sql", "SQL", 80, draw, figures)
