"""One stream whose numbers are broken is frozen and said; it stops no other, and no flip is lost for what is told beside it."""

from __future__ import annotations

import json
import logging
import math
from typing import Any

import polars as pl
import pytest
from told_streams import BAD, GOOD, POLICY, SEGMENT, START, at, effects, judge, play, stream, told

from alerts import canonical, flip_rows, rounds, soundness
from alerts.effects import Effect
from alerts.rounds import Due
from alerts.standing import Standing
from queries.store import Store

OTHER = '{"model":"other"}'


def effect(**changes: Any) -> Effect:
    common: dict[str, Any] = {"since": START, "until": at(1), "blocks": 24, "n_a": 4000, "n_b": 400, "value_a": 0.03, "value_b": 0.02}
    ends: dict[str, Any] = {"gain": 0.1, "gain_low": 0.05, "gain_high": 0.15, "basis": "control", "coverage": 1.0, "note": None}
    return Effect("net_itl_s", **{**common, **ends, **changes})


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("name", soundness.NUMBERS)
def test_a_number_that_is_none_freezes_its_stream_wherever_it_stands(name: str, number: float) -> None:
    due = Due(POLICY, SEGMENT, Standing("on", START), {"net_itl_s": effect(**{name: number})})
    [said] = rounds.judged([due], (), {}, at(1))
    assert (said.verdict, said.action, said.reason_code, said.state) == ("frozen", "hold", "not_a_number", "on")
    assert said.reason == f"{name} of net_itl_s is {number:g}, which is no number to judge by"


def test_every_number_of_an_effect_is_looked_at() -> None:
    whole = {"tests", "blocks", "n_a", "n_b", "turned_blocks", "blocks_together"}
    kinds = {name: kind for name, kind in Effect.__annotations__.items() if "float" in str(kind)}
    lists = {name for name, kind in kinds.items() if "Sequence" in str(kind)}
    assert set(kinds) - lists - whole == set(soundness.NUMBERS)


def test_one_broken_stream_stops_no_other_and_is_said_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "alerts.run"):
        for block in range(1, 6):
            effects(store, block, BAD, value_a=math.nan)
            effects(store, block, BAD, OTHER)
            judge(store, block)
    said = {row["segment"]: row for row in store.rows("select * from current_verdicts")}
    assert (said[SEGMENT]["verdict"], said[SEGMENT]["reason_code"], said[SEGMENT]["state"]) == ("frozen", "not_a_number", "on")
    assert said[OTHER]["state"] == "off_recommended"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert SEGMENT in caplog.text


def test_a_recommendation_stays_while_its_numbers_are_broken_and_goes_on_after(store: Store) -> None:
    play(store, range(1, 6), BAD)
    assert told(store) == [("lever.disable", "harm")]
    effects(store, 6, GOOD, gain_high=math.inf)
    judge(store, 6)
    assert (stream(store)["state"], stream(store)["verdict"]) == ("off_recommended", "frozen")
    assert "not confirmed since" in stream(store)["reason"]
    play(store, range(7, 19), GOOD)
    assert told(store) == [("lever.resolved", "recovered")]


def test_a_score_too_large_to_square_stops_nothing(store: Store) -> None:
    common = {"suite": "qa", "kind": "product", "lever": "speculation", "run_id": "r", "better": "higher"}
    common |= {"evaluated_at": START, "sender": "s", "received_at": START}
    scores = (("original", 1e200), ("original", 0.7), ("ngram", -1e200), ("ngram", 0.7))
    with store.write() as transaction:
        rows = [common | {"setting": setting, "score": score, "evaluation_id": f"e{n}"} for n, (setting, score) in enumerate(scores)]
        transaction.insert("evaluations", pl.DataFrame(rows))
    play(store, range(1, 3), GOOD)
    assert stream(store)["verdict"] == "keep"


def test_a_stream_whose_numbers_cannot_be_reckoned_with_is_frozen_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        msg = "Numerical result out of range"
        raise OverflowError(34, msg)

    monkeypatch.setattr(rounds, "judge", broken)
    [said] = rounds.judged([Due(POLICY, SEGMENT, Standing("on", START), {"net_itl_s": effect()})], (), {}, at(1))
    assert (said.verdict, said.reason_code) == ("frozen", "not_a_number")
    assert "out of range" in said.reason


def test_a_flip_is_written_without_the_numbers_that_json_has_no_text_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = flip_rows.notice
    monkeypatch.setattr(flip_rows, "notice", lambda *asked: {**real(*asked), "sizes": [math.nan, 1.0, {"of": math.inf}]})
    play(store, range(1, 6), BAD)
    [row] = store.rows("select notice from flips")
    assert json.loads(row["notice"])["sizes"] == [None, 1.0, {"of": None}]
    assert canonical.text(json.loads(row["notice"])) == row["notice"]
