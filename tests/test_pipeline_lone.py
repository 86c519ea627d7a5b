"""A request of one span is told without joining anything, and comes out as the joins would have it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from collectors_bodies import START, attribute, body, span

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline import assemble as assembling
from pipeline import lone, segments

EDGES = segments.Edges()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def engine(number: int, rng: random.Random, **fields: object) -> object:
    """A vLLM request with some of its attributes, odd ones among them."""
    said = {
        "gen_ai.request.id": f"r-{number}",
        "gen_ai.usage.prompt_tokens": rng.choice([0, 512, -1, 2**62]),
        "gen_ai.usage.completion_tokens": rng.choice([0, 1, 2, 300]),
        "gen_ai.latency.time_to_first_token": rng.choice([0.25, -1.0, 1e9]),
        "gen_ai.latency.e2e": rng.choice([2.5, 0.0]),
        "gen_ai.latency.time_in_model_decode": rng.choice([1.5, -0.5]),
        "gen_ai.request.n": rng.choice([1, 2]),
        "leverwatch.arm.speculation": rng.choice(["treated", "control"]),
        "leverwatch.replica": rng.choice(["s", "other"]),
    }
    chosen = [attribute(key, value) for key, value in said.items() if rng.random() < 0.8]
    return span(number, attributes=chosen, **fields)


def spans_of(room: EngineRoom, *bodies: bytes) -> pl.DataFrame:
    for one in bodies:
        room.spool.append("traces", "s", START, one).result(10)
    dict(room.steps())["load"]()
    return room.store.frame("select * exclude (signals), unnest(signals) from spans")


def assembled(spans: pl.DataFrame) -> list[dict[str, object]]:
    return assembling.assemble(spans, EDGES).requests.sort("trace_id", "request_id").to_dicts()


def test_what_stands_alone_comes_out_as_the_joins_would_have_it(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    status = [{"code": code} for code in (0, 1, 2)]
    spans = spans_of(room, body(*(engine(number, rng, status=rng.choice(status)) for number in range(1, 400))))
    alone, others = lone.split(spans)
    assert min(len(alone), len(others)) > 50
    quick = assembled(spans)
    monkeypatch.setattr(assembling, "split", lambda spans: (spans.clear(), spans))
    assert quick == assembled(spans)


def test_a_request_that_another_trace_asks_for_does_not_stand_alone(room: EngineRoom) -> None:
    tap = span(
        99, name="response_body", attributes=[attribute("leverwatch.body.request_id", "r-5"), attribute("leverwatch.body.cached_tokens", 7)]
    )
    plain = [span(n, attributes=[attribute("gen_ai.request.id", f"r-{n}"), attribute("gen_ai.usage.completion_tokens", 9)]) for n in (5, 6)]
    spans = spans_of(room, body(*plain), body(tap, scope="leverwatch.response_tap"))
    alone, _ = lone.split(spans)
    assert alone["request_id"].to_list() == ["r-6"]
    assert {row["request_id"]: row["cached_tokens"] for row in assembled(spans)} == {"r-5": 7, "r-6": None}


def test_two_requests_of_one_trace_do_not_stand_alone(room: EngineRoom) -> None:
    rng = random.Random(3)
    one_trace = {"trace_id": (1).to_bytes(16, "big")}
    alone, others = lone.split(spans_of(room, body(engine(1, rng, **one_trace), engine(2, rng, **one_trace))))
    assert (len(alone), len(others)) == (0, 2)
