"""Every hand-made request shape gives the values that it states, in whatever order its exports come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from collectors_shapes import SHAPES, T0_NS, Shape, exports, shapes

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

Row = dict[str, Any]
# What a shape states of a request, as the store has it.
OF_REQUEST: dict[str, Callable[[Row], Any]] = {
    "skipped_prompt_tokens": lambda row: row["cached_tokens"],
    "prompt_tokens": lambda row: row["prompt_tokens"],
    "completion_tokens": lambda row: row["output_tokens"],
    "draft_acceptance": lambda row: row["accepted_tokens"] / row["draft_tokens"],
    "accepted_tokens_per_iteration": lambda row: 1 + row["accepted_tokens"] / row["verify_steps"],
    "net_itl_s": lambda row: row["tpot_s"],
    "queue_s": lambda row: row["queue_s"],
    "prefill_queue_s": lambda row: row["queue_s"],
    "prefill_compute_s": lambda row: row["prefill_s"],
    "kv_transfer_s": lambda row: row["kv_transfer_s"],
    "usage_present": lambda row: (row["prompt_tokens"], row["output_tokens"]) != (None, None),
}
SIGNAL = "select max(signals.{0}) as value from spans where signals.{0} is not null and role in ('engine', 'log', 'body')"
# What it states of its spans alone.
OF_SPANS = {
    "engine_spans": "select count(*) as value from spans where role = 'engine'",
    "logical_requests": "select count(*) as value from requests",
    "inference_s": SIGNAL.format("inference_s"),
    "kv_transfer_upper_bound_s": SIGNAL.format("kv_transfer_bound_s"),
    "decode_leg_prefill_s_is_kv_load_plus_1_token": "select signals.prefill_s as value from spans where signals.output_tokens = 101 "
    "and role = 'engine'",
}
# What is said of a shape in words, or is no value of one request.
WORDS = {"note", "span_count_per_rank", "tokens_per_block_assumed"}
# What no span, body or log says; each with where it would come from.
NOT_HERE = {
    ("trtllm-unified", "skipped_prompt_tokens"): "in the records of /perf_metrics: reused blocks times the block size",
    ("trtllm-unified", "draft_acceptance"): "in the records of /perf_metrics",
    ("lmdeploy-0.16-metrics-only", "logical_requests"): "no spans: counters know of it",
    ("lmdeploy-0.16-metrics-only", "skipped_prompt_tokens"): "no spans: lmdeploy:cached_tokens_total is of the replica",
    ("tgi-3.3.7-stream", "tpot_incl_prefill_s"): "includes the prefill, so it is read into no column; the span keeps it",
}


@pytest.fixture(params=[pytest.param(shape, id=shape["id"]) for shape in shapes()] or [pytest.param(None, id="none")])
def shape(request: pytest.FixtureRequest) -> Shape:
    """One shape of the folder."""
    if request.param is None:
        pytest.skip(f"no shapes beside the checkout: {SHAPES}")
    found: Shape = request.param
    return found


def loaded(folder: Path, bodies: list[bytes], *, one_by_one: bool) -> tuple[list[Row], Callable[[str], Any]]:
    """(the requests that the bodies make, a way to ask the store for one value)."""
    room = EngineRoom(folder, Config())
    for body in bodies:
        room.spool.append("traces", "127.0.0.1", T0_NS, body).result(10)
        if one_by_one:
            room.drain()
    room.drain()
    rows = room.store.rows("select * from requests order by started_at, request_id")
    values = {name: room.store.rows(question)[0]["value"] for name, question in OF_SPANS.items() if room.store.rows(question)}
    room.close()
    return rows, values.get


@pytest.mark.parametrize("order", ["together", "one_by_one", "reversed"])
def test_a_shape_gives_the_values_that_it_states(shape: Shape, tmp_path: Path, order: str) -> None:
    bodies = list(exports(shape))
    rows, of_spans = loaded(tmp_path, bodies[::-1] if order == "reversed" else bodies, one_by_one=order != "together")
    for name, stated in shape["truth"].items():
        if name in WORDS or (shape["id"], name) in NOT_HERE:
            continue
        if name in OF_SPANS:
            assert of_spans(name) == pytest.approx(stated), name
        elif isinstance(stated, str):
            assert "preempted" in rows[0]["flags"], name
        else:
            assert len(rows) == 1
            assert OF_REQUEST[name](rows[0]) == (None if stated is None else pytest.approx(stated, rel=1e-4)), name


def test_what_a_shape_states_beyond_spans_bodies_and_logs_is_listed_with_where_it_comes_from() -> None:
    stated = {(shape["id"], name) for shape in shapes() for name in shape["truth"]}
    assert not shapes() or set(NOT_HERE) <= stated
    assert {name for _, name in stated} <= {*OF_REQUEST, *OF_SPANS, *WORDS, *(name for _, name in NOT_HERE)}
