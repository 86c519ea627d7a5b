"""The compare page: any two sets of requests, and what tells them apart, ranked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboards import compare_forms, compare_rows, filters, templating, theme
from dashboards.arriving import newest
from dashboards.choice import Choice, choice
from dashboards.compare_rows import Row
from dashboards.compared import Compared, Comparison
from dashboards.figure import Figure
from dashboards.page import Asked, Page
from dashboards.two_sets import OWN, SETS, TwoSets, two_sets
from queries import explain

WAIT_S = 3.0  # for a page that says how far it is; a figure alone waits for its answer
FIGURE_WAIT_S = 25.0
SHOWN_ROWS = 30
STATEMENTS = 2  # of a comparison: the counts, and the sums of blocks for intervals
TITLE_CHARACTERS = 90
COLUMNS = "select column_name, data_type from duckdb_columns() where table_name = 'requests' order by column_index"


@dataclass(frozen=True)
class _Answer:
    """What is asked and known of a comparison."""

    sets: TwoSets
    compared: Compared
    rows: list[Row]
    waits: str
    figures: list[Figure]


def draw(asked: Asked) -> str:
    """The page as HTML. Raises ValueError for sets that cannot be."""
    chosen = choice(asked.query, newest(asked.reader, asked.now))
    answer = _answer(asked, chosen, WAIT_S)
    values = compare_forms.known(asked)
    told = answer.sets.query if answer else {name: value for name, value in asked.query.items() if "." in name}
    listed = answer.rows if answer else []
    telling = [row for row in listed if row.tells]
    return templating.render(
        "compare.html",
        asked=asked,
        bar=filters.bar(asked, chosen, levers=(), own=[f"{name}.{key}" for name in SETS for key in OWN]),
        chosen=chosen,
        hidden=list(chosen.query.items()),
        forms=compare_forms.forms(told, values),
        presets=compare_forms.presets(chosen, values),
        replicas=compare_forms.replicas(chosen, values),
        answer=answer,
        title=_title(answer.sets) if answer else "",
        most_s=STATEMENTS * asked.sandbox.limits.most_wall_s if asked.sandbox else 0.0,
        figures=asked.drawn(answer.figures) if answer else [],
        rows=telling[:SHOWN_ROWS],
        left_out=max(0, len(telling) - SHOWN_ROWS),
        own=[row for row in listed if row.is_by_nature],
        others=[row for row in listed if not row.tells and not row.is_by_nature],
        mixed=compare_rows.mixed(listed),
        pooled=compare_forms.pooled(chosen, values),
        sizes=_sizes(listed),
        as_of=theme.clock(answer.compared.answered_at, asked.now) if answer and answer.compared.answered_at else "",
    )


def figures(asked: Asked) -> list[Figure]:
    """The charts of the page; waits for the answer. Raises ValueError where there is none."""
    answer = _answer(asked, choice(asked.query, newest(asked.reader, asked.now)), FIGURE_WAIT_S)
    return answer.figures if answer else []


def _answer(asked: Asked, chosen: Choice, wait_s: float) -> _Answer | None:
    sets = two_sets(asked.query, chosen)
    if sets is None:
        return None
    compared = asked.reader.compare(sets.comparison, wait_s)
    of = compared.of or sets.comparison
    listed = compare_rows.rows(compared, of, _statement(asked, of)) if compared.rows is not None else []
    waits = _waits(compared)
    return _Answer(sets, compared, listed, waits, compare_rows.figures(compared, listed, waits))


def _statement(asked: Asked, of: Comparison) -> explain.Comparison:
    columns: dict[str, Any] = dict(asked.reader.frame(COLUMNS).iter_rows())
    return explain.comparison(of.a, of.b, columns, (), of.since, of.until, of.where)


def _title(sets: TwoSets) -> str:
    words = f"{sets.a.words} against {sets.b.words}"
    return f"{words[0].upper()}{words[1:]}" if len(words) <= TITLE_CHARACTERS else "A against B"


def _waits(compared: Compared) -> str:
    """Why there is no answer; empty where there is one."""
    if compared.error:
        return compared.error
    return "" if compared.rows is not None else f"the comparison has been running for {compared.running_s or 0.0:.0f} s"


def _sizes(listed: list[Row]) -> str:
    """How many requests the sets hold, and how many blocks of time."""
    if not listed:
        return ""
    told = listed[0].told
    blocks = f"in {told['blocks']} blocks of 5 min"
    said = f"A holds {theme.count(told['requests_a'])} requests, B {theme.count(told['requests_b'])}, {blocks}"
    said += "; of the larger ones 100,000 are looked at" if told["sampled"] else ""
    return f"{said}. {told['times'][0].upper()}{told['times'][1:]}." if told["times"] else f"{said}."


PAGE = Page("/compare", "Compare", 40, draw, figures)
