"""From requests to verdicts: what many requests' impossible values touch is not judged, and the stream keeps its state."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.loading import Here, put_files
from leverwatch.local import Local
from pipeline.guard_effects import with_traps

T0 = datetime(2026, 3, 4, 12, tzinfo=UTC)
BLOCKS, IN_ARM = 14, 25
VERDICTS = "select verdict, reason_code, reason, state from current_verdicts where policy = 'speculation-net-itl'"


def row(number: int, block: int, arm: str, decode_s: float) -> dict[str, Any]:
    return {
        "request_id": f"{arm}-{block}-{number}", "started_at": (T0 + timedelta(minutes=5 * block, seconds=5 * number)).isoformat(),
        "engine": "vllm", "model": "m", "replica": f"r{((arm == 'control') + block // 6) % 2}", "prompt_tokens": 100,
        "output_tokens": 101, "ttft_s": 0.2, "e2e_s": 9.0, "decode_s": decode_s, "outcome": "ok",
        "levers": {"speculation": "on"}, "arms": {"speculation": arm},
    }  # fmt: skip


def judged(folder: Path, odd_every: int) -> EngineRoom:
    """A lever that makes each token 30 % slower; every so many treated requests, the engine's clock is stepped."""
    rows = []
    for block in range(BLOCKS):
        for number in range(IN_ARM):
            odd = odd_every and number % odd_every == 0
            rows.append(row(number, block, "treated", -3.0 if odd else 2.6 + 0.01 * (number % 7)))
            rows.append(row(number, block, "control", 2.0 + 0.01 * (block % 5)))
    rows.append(row(0, BLOCKS + 3, "control", 2.0))
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(one) for one in rows))
    room = EngineRoom(folder / "data", Config())
    assert list(put_files(Here(Local(room), "load:x"), [folder / "rows.jsonl"])) == []
    room.drain()
    return room


@pytest.mark.parametrize(("odd_every", "frozen"), [(4, True), (25, False), (0, False)])
def test_a_stream_whose_input_fell_into_a_trap_is_frozen_in_the_state_it_had(tmp_path: Path, odd_every: int, frozen: bool) -> None:
    room = judged(tmp_path, odd_every)
    (verdict,) = room.store.rows(VERDICTS)
    flips = room.store.rows("select state_after from flips where policy = 'speculation-net-itl'")
    if frozen:
        assert (verdict["verdict"], verdict["reason_code"], verdict["state"], flips) == ("frozen", "suspicious_input", "on", [])
        assert verdict["reason"] == "net ITL: 28 % of requests fell into the trap decode_s_negative, 10 % may"
    else:
        assert (verdict["verdict"], verdict["reason_code"], verdict["state"], flips) == ("insufficient", "unscaled", "on", [])
        assert "gain -3" in verdict["reason"], "it is read, and waits for its evidence alone"
    room.close()


def test_an_effect_says_which_trap_touches_it_and_leaves_others_alone(tmp_path: Path) -> None:
    room = judged(tmp_path, 4)
    found = room.store.rows("select metric, trap, trapped_share, note from effects order by until desc, metric")
    by_metric = {one["metric"]: one for one in reversed(found)}
    assert by_metric["net_itl_s"]["trap"] == by_metric["tpot_s"]["trap"] == "decode_s_negative"
    assert by_metric["net_itl_s"]["trapped_share"] == pytest.approx(0.28)
    assert by_metric["net_itl_s"]["note"] == "28 % of its requests fell into the trap decode_s_negative"
    assert (by_metric["ttft_s"]["trap"], by_metric["ttft_s"]["note"]) == (None, None)
    room.close()


def cell(metric: str, n: int, arm: str = "treated") -> dict[str, Any]:
    return {"lever": "speculation", "segment": "{}", "arm": arm, "metric": metric, "block_started_at": T0, "n": n, "num": 0.0, "den": 0.0}


def test_several_traps_of_a_metric_add_up_and_the_worse_arm_counts() -> None:
    effects = pl.DataFrame(
        [{"lever": "speculation", "segment": "{}", "metric": "tpot_s", "arm_a": "treated", "arm_b": "control", "note": None}],
        schema_overrides={"note": pl.String},
    )
    cells = [cell("requests", 100), cell("requests", 100, "control"), cell("trap:output_tokens_beyond", 4, "control")]
    cells += [cell("trap:decode_s_negative", 8, "control"), cell("trap:tpot_is_a_step", 90), cell("trap:kv_usage_above_one", 90)]
    (found,) = with_traps(effects, pl.DataFrame(cells)).to_dicts()
    assert (found["trap"], found["trapped_share"]) == ("decode_s_negative", pytest.approx(0.12))


def test_effects_without_traps_are_left_as_they_are() -> None:
    effects = pl.DataFrame({"metric": ["tpot_s"]})
    assert with_traps(effects, pl.DataFrame([cell("requests", 100)])).columns == ["metric"]
