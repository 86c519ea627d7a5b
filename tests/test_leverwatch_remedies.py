"""The words for what is missing: every column of every dialect has some, and they fit what is heard of the replica."""

from __future__ import annotations

import pytest

from collectors.dialect_parts import Dialect
from collectors.dialects import shipped
from leverwatch.findings import METRICS
from leverwatch.remedies import COLUMNS, Heard, remedy
from queries.metric_sql import columns_of

ENGINES = sorted({dialect.speaks_for or dialect.dialect for dialect in shipped()} | {""})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("heard", [Heard(), Heard(tap=True), Heard(is_named=False)], ids=["alone", "tapped", "nameless"])
def test_every_column_of_every_dialect_has_a_remedy(engine: str, heard: Heard) -> None:
    for some in (False, True):
        found = {column: remedy(column, engine, heard, some=some) for column in COLUMNS}
        assert {column: said for column, said in found.items() if len(said) < 12} == {}


@pytest.mark.parametrize("dialect", [one for one in shipped() if not one.speaks_for], ids=lambda dialect: dialect.dialect)
def test_what_a_dialect_itself_says_of_a_column_is_what_is_told(dialect: Dialect) -> None:
    told = {column: remedy(column, dialect.dialect) for column in COLUMNS if column in dialect.cannot}
    assert {column for column, said in told.items() if not said.startswith(dialect.cannot[column])} == set()


def test_every_input_of_a_core_metric_is_a_column_that_is_looked_at() -> None:
    assert {name for metric in METRICS for name in columns_of(metric)} <= set(COLUMNS)


def test_a_gauge_that_is_scraped_already_is_not_asked_for_again() -> None:
    scraped = Heard(samples=(("queue_depth", "vllm:num_requests_waiting"),))
    assert "scrape vllm:num_requests_waiting" in remedy("queue_depth", "vllm")
    assert remedy("queue_depth", "vllm", scraped) == "no request says it; `samples` has it of the replica (vllm:num_requests_waiting)"


@pytest.mark.parametrize("heard", [Heard(), Heard(tap=True)], ids=["alone", "tapped"])
def test_where_the_engine_is_not_known_no_softwares_own_switch_is_advised(heard: Heard) -> None:
    said = " ".join(remedy(column, "", heard, some=some) for column in COLUMNS for some in (False, True))
    assert [word for word in ("TGI", "tgi_", "DYN_", "llm-d", "LiteLLM", "return_perf_metrics") if word in said] == []


def test_where_the_tap_speaks_nobody_is_told_to_print_it() -> None:
    said = [remedy(column, engine, Heard(tap=True)) for engine in ENGINES for column in COLUMNS]
    assert [one for one in said if "prints the tap" in one] == []
