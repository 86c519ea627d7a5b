"""The compare page: any two sets of a URL, as `explain` ranks them; each row's question gives its numbers; long work says how far it is."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dashboards_rows
import polars as pl
import pytest
from dashboards_rows import FLEETS, HOSTILE, NOW

from dashboards import compare_forms, compare_rows
from dashboards.choice import choice
from dashboards.compare_rows import Row
from dashboards.compared import Compared, Comparison
from dashboards.page import Asked
from dashboards.pages import compare
from dashboards.two_sets import TwoSets, two_sets
from leverwatch import comparing
from leverwatch.comparing import Comparisons
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.explaining import EVERY_KEY, explain
from pipeline.explain import DEFINES, OWN
from queries import explain as explain_question

CHOSEN = choice({}, NOW)
ARMS = {"a.arm": "treated:speculation", "b.arm": "control:speculation"}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path_factory.mktemp("data"), Config(), clock=lambda: NOW)
    dashboards_rows.fill(opened.store)
    yield opened
    opened.close()


def sets(**query: str) -> TwoSets:
    told = {name.replace("__", "."): value for name, value in query.items()}
    found = two_sets(told, choice({key: value for key, value in told.items() if "." not in key}, NOW))
    assert found is not None
    return found


def asked(room: EngineRoom, query: dict[str, str]) -> Asked:
    return Asked(room, query, NOW, path="/compare", sandbox=room.sandbox)


@pytest.fixture(scope="module")
def answer(room: EngineRoom) -> Any:
    """The arms of speculation in one model, waited for: on a busy machine it takes longer than a page waits."""
    query = {**ARMS, "model": FLEETS[0].model}
    found = compare._answer(asked(room, query), choice(query, NOW), 120.0)
    assert found is not None
    assert found.compared.rows is not None, found.waits
    return found


def test_the_ranking_is_that_of_explain(room: EngineRoom, answer: Any) -> None:
    where = f"model = '{FLEETS[0].model}'"
    told = explain(room, "treated:speculation", "control:speculation", since=CHOSEN.since, until=CHOSEN.until, where=where, limit=EVERY_KEY)
    assert answer.compared.rows.equals(told)
    values = answer.figures[0].values
    assert values["distance"].to_list() == told.filter(pl.col("note").is_null())["distance"].to_list()[: len(values)]


def test_levers_stand_first_then_what_differs_most(answer: Any) -> None:
    is_lever = [row.is_lever for row in answer.rows]
    assert is_lever == sorted(is_lever, reverse=True)
    others = [row.difference for row in answer.rows if not row.is_lever and row.tells]
    assert others == sorted(others, reverse=True)


def test_what_the_lever_does_by_itself_and_what_defines_the_arms_stand_apart(room: EngineRoom, answer: Any) -> None:
    own = {row.key: row.note for row in answer.rows if row.is_by_nature}
    assert {"draft_tokens", "accepted_tokens", "arm.speculation"} <= set(own)
    assert (own["draft_tokens"], own["arm.speculation"]) == ("what speculation does by itself", "defines the sets")
    page = compare.draw(asked(room, {**ARMS, "model": FLEETS[0].model}))
    ranked_first, _, after = page.partition('<details id="own">')
    assert "draft_tokens" not in ranked_first
    assert "SQL of draft_tokens" in after


def told(key: str, note: str | None, difference: float) -> Row:
    """A row of the answer with nothing but its key, note and difference."""
    words = {"key": key, "note": note, "difference": difference, "condition": f"{key} = 'x'", "distance": difference, "chance": 0.01}
    numbers = dict.fromkeys(("share_a", "share_b", "coverage_a", "coverage_b"), 1.0) | dict.fromkeys(("n_a", "n_b"), 10)
    rows = pl.DataFrame([words | numbers | {"median_a": None, "median_b": None}])
    return compare_rows.rows(Compared(rows), QUESTION, explain_question.comparison("model = 'x'", None, {"model": "VARCHAR"}))[0]


def test_another_mix_of_traffic_is_said_first_where_it_does_not_define_the_sets() -> None:
    listed = [told("model", None, 0.4), told("input_bucket", None, 0.6), told("tenant", "defines the sets", 1.0), told("e2e_s", None, 0.9)]
    assert [said.split(" (")[0] for said in compare_rows.mixed(listed)] == ["prompt lengths", "models"]
    assert compare_rows.mixed([told("model", None, 0.02), told("model", "no more than chance", 0.0)]) == []


def test_a_row_whose_interval_did_not_fit_is_an_answer_all_the_same() -> None:
    notes = ("no interval: it takes longer", "no more than chance; no interval: it takes longer", DEFINES, OWN.format("speculation"), None)
    assert [told("e2e_s", note, 0.9).tells for note in notes] == [True, False, False, False, True]


def test_a_usual_comparison_over_several_models_says_so() -> None:
    values = {"model": ["a", "b"]}
    assert "all 2 models together" in compare_forms.pooled(CHOSEN, values)
    assert compare_forms.pooled(choice({"model": "a"}, NOW), values) == compare_forms.pooled(CHOSEN, {"model": ["a"]}) == ""


def test_the_question_of_a_number_gives_its_means_and_medians(room: EngineRoom, answer: Any) -> None:
    row = next(row for row in answer.rows if row.key == "decode_s")
    listed = room.sandbox.run(row.sql.text, row.sql.params).frame().to_dicts()
    assert [one["requests"] for one in listed] == [row.told["requests_a"], row.told["requests_b"]]
    assert [one["mean"] for one in listed] == pytest.approx([row.told["mean_a"], row.told["mean_b"]])
    assert [one["median"] for one in listed] == pytest.approx([row.told["median_a"], row.told["median_b"]], rel=0.03)
    assert row.gap.startswith("mean ")


def test_the_question_of_a_text_gives_its_shares(room: EngineRoom, answer: Any) -> None:
    row = next(row for row in answer.rows if row.key == "input_bucket")
    listed = {one["value"]: one for one in room.sandbox.run(row.sql.text, row.sql.params).frame().to_dicts()}
    told = listed[re.search(r"'(.*)'", row.told["condition"])[1]]  # type: ignore[index]
    assert (told["share_a"], told["share_b"]) == pytest.approx((row.told["share_a"], row.told["share_b"]))


def test_the_page_has_a_row_and_a_question_for_each_key(room: EngineRoom, answer: Any) -> None:
    page = compare.draw(asked(room, {**ARMS, "model": FLEETS[0].model}))
    told = [row for row in answer.rows if row.tells]
    assert [html.unescape(one) for one in re.findall(r'aria-label="SQL of ([^"]*)">SQL</a></td>', page)][: len(told)] == [
        row.key for row in told
    ]
    shown = {float(value) for value in re.findall(r'<data value="([\d.e-]+)">', page)}
    assert {row.told["distance"] for row in told} <= shown
    assert f"A holds {told[0].told['requests_a']:,} requests" in page


def test_a_set_is_what_the_url_says_and_texts_are_quoted() -> None:
    found = sets(a__model="it's", a__replica="", b__slow="ttft_s", since="6h")
    assert found.a.condition == "model = 'it''s' and replica is null"
    assert found.b.condition == "ttft_s > (select quantile_cont(ttft_s, 0.95) from scope)"
    assert found.a.words == "it's, replica unknown"
    assert (found.comparison.since, found.comparison.until) == (NOW - timedelta(hours=6), NOW)


def test_a_set_b_of_which_nothing_is_said_is_the_rest() -> None:
    found = sets(a__replica="r1", model="m")
    assert (found.comparison.b, found.b.words, found.comparison.where) == (None, "the rest", "model = 'm'")


def test_two_times_lie_in_one_period_and_each_set_has_its_own() -> None:
    asked_of = sets(a__since="1h", b__since="25h", b__until="24h").comparison
    assert (asked_of.since, asked_of.until) == (NOW - timedelta(hours=25), NOW)
    assert asked_of.a == f"started_at >= timestamptz '{(NOW - timedelta(hours=1)).isoformat()}'"
    assert asked_of.b == f"started_at < timestamptz '{(NOW - timedelta(hours=24)).isoformat()}'"


def test_a_lever_without_sets_asks_for_its_arms_and_nothing_asks_for_nothing() -> None:
    assert sets(lever="kv_quantization").a.told == {"arm": "treated:kv_quantization"}
    assert two_sets({"model": "m"}, CHOSEN) is None


def test_what_moves_with_time_is_one_question() -> None:
    later = two_sets({"a.since": "1h"}, choice({}, NOW + timedelta(seconds=5)))
    assert later is not None
    assert later.comparison == sets(a__since="1h").comparison


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"a.modle": "m"}, r"key 'a\.modle' is unknown; did you mean 'a\.model'\?"),
        ({"b.model": "m"}, "set A is empty"),
        ({"a.arm": "treated"}, "an arm and a lever are taken"),
        ({"a.arm": "control:x') or (true"}, "an arm and a lever are taken"),
        ({"a.slow": "model"}, "a.slow 'model' is unknown"),
        ({"a.where": "true) or (true"}, "a bracket is closed that was not opened"),
        ({"a.since": "1h", "a.until": "2h"}, "set A has no time"),
        ({"a.since": "yesterday"}, "ISO 8601 or an age"),
    ],
)
def test_a_set_that_cannot_be_is_refused_with_what_is_taken(query: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        two_sets(query, CHOSEN)


def test_the_forms_hold_what_the_url_says_and_escape_it(room: EngineRoom) -> None:
    query = {"a.model": HOSTILE, "a.where": f"model <> '{HOSTILE}'", "b.since": "3h", "a.replica": ""}
    told = compare_forms.forms(query, compare_forms.known(asked(room, query)))
    assert {select.name: [one.value for one in select.options if one.is_chosen] for select in told[0].selects}["a.model"] == [HOSTILE]
    assert {name: value for name, _, value, _ in told[1].texts}["b.since"] == "3h"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "compare", lambda *_: Compared(error=f"no such {HOSTILE}"))
        page = compare.draw(asked(room, query))
    assert "<script>alert" not in page
    assert 'role="alert">no such &lt;script&gt;' in page


def test_presets_are_links_that_keep_what_both_sets_are_narrowed_to() -> None:
    chosen = choice({"model": "m", "temperature_bucket": "<0.3"}, NOW)
    listed = {one.words: one.url for one in compare_forms.presets(chosen, {"arm": ["treated:tensor_parallel", "control:tensor_parallel"]})}
    assert "model=m" in listed["tensor parallel: treated against control"]
    assert "temperature_bucket" not in listed["tensor parallel: treated against control"]
    assert "a.since=1h&b.since=25h&b.until=24h" in listed["the last hour against the same hour yesterday"]


def test_an_empty_set_is_an_answer_in_words(room: EngineRoom) -> None:
    query = {"a.model": "nobody"}
    found = compare._answer(asked(room, query), choice(query, NOW), 120.0)
    assert found is not None
    assert "set A (model = 'nobody') holds no request" in found.waits
    assert found.figures[0].drawing is None


QUESTION = Comparison("k", "true", None, None, NOW - timedelta(hours=1), NOW)
ROWS = pl.DataFrame({"key": ["model"]})


def test_a_comparison_on_its_way_says_for_how_long_and_the_first_answer_stands_until_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def slow(_: Comparison) -> pl.DataFrame:
        assert goes_on.wait(30)
        return ROWS

    held = Comparisons(slow, lambda: NOW, goes_on.set)
    begun = held.ask(QUESTION, 0.01)
    assert (begun.rows, begun.running_s is not None) == (None, True)
    goes_on.set()
    assert held.ask(QUESTION, 30).rows is ROWS
    goes_on.clear()
    monkeypatch.setattr(comparing, "KEEP_S", 0.0)
    monkeypatch.setattr(comparing, "KEEP_TIMES", 0.0)
    again = held.ask(QUESTION, 30)
    assert (again.rows is ROWS, again.answered_at, again.running_s is not None) == (True, NOW, True)
    held.close()


def test_an_answer_is_not_asked_for_again_while_it_is_new() -> None:
    asked_for: list[Comparison] = []
    held = Comparisons(lambda one: asked_for.append(one) or ROWS, lambda: NOW, lambda: None)  # type: ignore[func-returns-value]
    assert [held.ask(QUESTION, 30).rows is ROWS for _ in range(3)] == [True] * 3
    assert asked_for == [QUESTION]
    held.close()


def test_too_many_at_once_are_told_to_come_again_and_closing_stops_the_one_that_runs() -> None:
    stopped = threading.Event()

    def slow(_: Comparison) -> pl.DataFrame:
        assert stopped.wait(30)
        return ROWS

    held = Comparisons(slow, lambda: NOW, stopped.set)
    asked_for = [Comparison(str(n), "true", None, None, NOW, NOW) for n in range(comparing.MOST_WAITING + 1)]
    said = [held.ask(one, 0.0).error for one in asked_for]
    assert said == [""] * comparing.MOST_WAITING + ["4 comparisons are on their way; ask again in a moment"]
    held.close()
    assert stopped.is_set()


def test_however_many_are_asked_for_as_many_wait_and_are_kept_as_may() -> None:
    goes_on = threading.Event()

    def slow(_: Comparison) -> pl.DataFrame:
        assert goes_on.wait(30)
        return ROWS

    held = Comparisons(slow, lambda: NOW, goes_on.set)
    lookers = [threading.Thread(target=held.ask, args=(QUESTION, 30.0)) for _ in range(comparing.MOST_LOOKING)]
    for looker in lookers:
        looker.start()
    while held._looking.acquire(blocking=False):
        held._looking.release()
    assert held.ask(QUESTION, 3600.0).running_s is not None, "one more waits for nothing"
    for n in range(200):
        held.ask(Comparison(f"odd {n}", "true", None, None, NOW, NOW), 0.0)
    assert len(held._asked) == comparing.MOST_WAITING, "who was told to come again is not kept"
    goes_on.set()
    for looker in lookers:
        looker.join(30)
    for n in range(2 * comparing.MOST_KEPT):
        assert held.ask(Comparison(str(n), "true", None, None, NOW, NOW), 30.0).rows is ROWS
    assert len(held._asked) == comparing.MOST_KEPT
    held.close()
