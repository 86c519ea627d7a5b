"""The traffic model gives the same requests for the same seed, coherent ones, and the truth can be found in them again."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from demo import records, scenarios, traffic

BEGAN_NS = 1_764_400_123_456_789_000
FIRST_BLOCK = BEGAN_NS // (traffic.BLOCK_S * traffic.NS)
SPECULATION = ["draft_tokens", "accepted_tokens", "verify_steps"]


def history(name: str, blocks: range) -> pl.DataFrame:
    scenario = scenarios.load(name)
    frame = pl.concat([traffic.requests(scenario, BEGAN_NS, FIRST_BLOCK + block, seed=7) for block in blocks])
    bucket = pl.when(pl.col("prompt_tokens") < 2048).then(pl.lit("512-2047")).otherwise(pl.lit("2048-8191"))
    return frame.with_columns(hour=(pl.col("started_ns") - BEGAN_NS) / 3.6e12, input_bucket=bucket)


@pytest.fixture(scope="module")
def batch_grows() -> pl.DataFrame:
    return history("batch-grows", range(241))


@pytest.fixture(scope="module")
def an_hour() -> pl.DataFrame:
    return history("batch-grows", range(200, 212))


def net_gain(requests: pl.DataFrame, segment: dict[str, str]) -> float:
    """1 - treated / control of the time per token, with what the lever adds to the time to the first token."""
    inside = requests.filter(*(pl.col(key) == value for key, value in segment.items()))
    sums = inside.group_by("speculation_arm").agg(
        pl.len().alias("n"), pl.sum("decode_s"), pl.mean("ttft_s"), tokens=(pl.col("output_tokens") - 1).sum()
    )
    arm = {row["speculation_arm"]: row for row in sums.to_dicts()}
    treated, control = arm["treated"], arm["control"]
    inflation_s = treated["n"] * max(0.0, treated["ttft_s"] - control["ttft_s"])
    return float(1 - (treated["decode_s"] + inflation_s) / treated["tokens"] / (control["decode_s"] / control["tokens"]))


def test_the_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    scenario = scenarios.load("batch-grows")
    first, again, other = (traffic.requests(scenario, BEGAN_NS, FIRST_BLOCK + 9, seed) for seed in (3, 3, 4))
    assert first.equals(again)
    assert set(first["trace_id"]).isdisjoint(other["trace_id"])


def test_no_request_arrives_before_hour_zero_or_outside_its_block() -> None:
    scenario = scenarios.load("all-well")
    assert traffic.requests(scenario, BEGAN_NS, FIRST_BLOCK, 1)["started_ns"].min() >= BEGAN_NS  # type: ignore[operator]
    later = traffic.requests(scenario, BEGAN_NS, FIRST_BLOCK + 1, 1)["started_ns"]
    assert (later // (traffic.BLOCK_S * traffic.NS) == FIRST_BLOCK + 1).all()
    assert later.is_sorted()


def test_a_day_of_twenty_hours_holds_about_115_000_requests(batch_grows: pl.DataFrame) -> None:
    assert 112_000 < batch_grows.filter(pl.col("hour") < 20).height < 119_000


def test_the_truth_of_batch_grows_can_be_found_again_in_its_requests(batch_grows: pl.DataFrame) -> None:
    for truth in scenarios.load("batch-grows").truth:
        before = net_gain(batch_grows.filter(pl.col("hour") < (truth.from_hour or 20)), truth.segment)
        assert before == pytest.approx(truth.gain, abs=0.03)
        if truth.gain_after is not None and truth.from_hour is not None:
            after = net_gain(batch_grows.filter(pl.col("hour") > truth.from_hour + 0.5), truth.segment)
            assert after == pytest.approx(truth.gain_after, abs=0.04)


def test_the_segments_beside_the_harmed_one_keep_their_gain_to_the_end(batch_grows: pl.DataFrame) -> None:
    for truth in scenarios.load("batch-grows").truth:
        if truth.from_hour is None:
            assert net_gain(batch_grows.filter(pl.col("hour") > 15), truth.segment) == pytest.approx(truth.gain, abs=0.04)


def test_all_well_differs_from_batch_grows_in_the_harmed_lane_alone(an_hour: pl.DataFrame) -> None:
    well = history("all-well", range(200, 212))
    harmed = (pl.col("model") == "chat-70b") & (pl.col("input_bucket") == "2048-8191")
    assert well.filter(~harmed).equals(an_hour.filter(~harmed))
    assert well.filter(harmed)["batch"].max() < an_hour.filter(harmed)["batch"].min() / 3  # type: ignore[operator]


def test_acceptance_is_that_of_the_pool(batch_grows: pl.DataFrame) -> None:
    sums = batch_grows.group_by("model").agg(pl.sum("draft_tokens", "accepted_tokens"))
    acceptance = {row["model"]: row["accepted_tokens"] / row["draft_tokens"] for row in sums.to_dicts() if row["draft_tokens"]}
    assert acceptance == {"chat-70b": pytest.approx(0.55, abs=0.01), "code-13b": pytest.approx(0.7, abs=0.01)}


def test_time_per_token_scatters_by_about_three_tenths(batch_grows: pl.DataFrame) -> None:
    control = batch_grows.filter(pl.col("hour") < 15, pl.col("speculation_arm") == "control", pl.col("output_tokens") > 20)
    each = control.with_columns(tpot_s=pl.col("decode_s") / (pl.col("output_tokens") - 1))
    scatter = each.group_by("model", "input_bucket").agg(cv=pl.std("tpot_s") / pl.mean("tpot_s"))
    assert scatter["cv"].to_list() == [pytest.approx(0.3, abs=0.03)] * 3


def test_a_quarter_of_a_lane_is_control_and_another_quarter_every_half_hour(batch_grows: pl.DataFrame) -> None:
    long = batch_grows.filter(pl.col("model") == "chat-70b", pl.col("input_bucket") == "2048-8191")
    half_hours = long.with_columns(half_hour=pl.col("started_ns") // (traffic.ROTATION_S * traffic.NS))
    control = (
        half_hours.filter(pl.col("speculation_arm") == "control").group_by("half_hour").agg(pl.col("replica").unique()).sort("half_hour")
    )
    assert set(control["replica"].list.len()) == {1}
    assert len({tuple(control["replica"][i]) for i in range(4)}) == 4
    assert (long["speculation_arm"] == "control").mean() == pytest.approx(0.25, abs=0.01)


def test_a_replica_serves_one_input_length_under_a_stable_name(batch_grows: pl.DataFrame) -> None:
    names = {f"chat-70b-{i}" for i in range(8)} | {f"code-13b-{i}" for i in range(4)} | {"docs-8b-decode-0"}
    by_replica = batch_grows.group_by("replica").agg(pl.col("input_bucket").n_unique())
    assert set(by_replica["replica"]) == names
    assert set(by_replica["input_bucket"]) == {1}


def test_what_a_request_states_about_itself_adds_up(an_hour: pl.DataFrame) -> None:
    sum_s = pl.col("frontend_s") + pl.col("queue_s") + pl.col("prefill_s") + pl.col("kv_transfer_s").fill_null(0)
    steps = pl.col("output_tokens") - 1 - pl.col("accepted_tokens")
    claims = {
        "ttft": (pl.col("ttft_s") - sum_s).abs() < 1e-9,
        "e2e": pl.col("e2e_s") > pl.col("ttft_s") + pl.col("decode_s"),
        "cached": pl.col("cached_tokens") < pl.col("prompt_tokens"),
        "accepted": pl.col("accepted_tokens") <= pl.col("draft_tokens"),
        "verified": pl.col("verify_steps") <= steps,
        "cut": (pl.col("finish_reason") == "length") == (pl.col("output_tokens") == pl.col("max_tokens")),
        "decoded": (pl.col("decode_s") > 0) == (pl.col("output_tokens") > 1),
    }
    assert an_hour.select(**{name: claim.all() for name, claim in claims.items()}).row(0) == (True,) * len(claims)


def test_counts_of_speculation_are_there_in_the_treated_arm_alone(an_hour: pl.DataFrame) -> None:
    there = an_hour.with_columns(pl.col(SPECULATION).is_not_null())
    treated = (pl.col("speculation_arm") == "treated").fill_null(False)
    assert there.select(pl.all_horizontal(pl.col(name) == treated for name in SPECULATION).all()).item()


def test_records_are_the_frame_row_by_row(an_hour: pl.DataFrame) -> None:
    request = next(records.rows(an_hour))
    assert request._asdict() == an_hour.select(records.Request._fields).row(0, named=True)
    assert np.isclose(request.ttft_s, an_hour["ttft_s"][0])
