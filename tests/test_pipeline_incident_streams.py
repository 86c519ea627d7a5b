"""Errors by incident: bursts accuse nobody, more of them in treated do, and what is kept goes on where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline import incident_counts, incident_store
from pipeline.evidence import ALPHA, BEYOND, BLOCKS_A_CYCLE
from pipeline.evidence_families import NO_GAIN
from pipeline.evidence_told import SCHEMA
from pipeline.incident_counts import MOST_A_BLOCK, OTHER, named
from pipeline.incident_streams import Streams, advanced
from queries.store import Store

BEGAN = datetime(2026, 3, 2, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
THRESHOLD = float(np.log(BLOCKS_A_CYCLE / ALPHA))
SEGMENT = '{"model":"m"}'
KNOWN = pl.DataFrame({"lever": ["speculation"], "segment": [SEGMENT]})


def error(after_s: float, arm: str = "treated", replica: str = "r0", **fields: Any) -> dict[str, Any]:
    """An error that ended so many seconds after BEGAN, as a row of `requests`."""
    ended = BEGAN + timedelta(seconds=after_s)
    row = {"request_id": f"{arm}-{replica}-{after_s}", "trace_id": "t", "model": "m", "replica": replica, "outcome": "error"}
    return row | {"started_at": ended - timedelta(seconds=2), "ended_at": ended, "arms": [{"key": "speculation", "value": arm}]} | fields


def read(store: Store, rows: Sequence[dict[str, Any]], ends: Sequence[datetime], known: pl.DataFrame = KNOWN) -> list[pl.DataFrame]:
    """The incidents at each end, of requests that a store holds."""
    frame = pl.DataFrame(list(rows), infer_schema_length=None)
    with store.write() as transaction:
        arms = "map_from_entries(arms) as arms"
        transaction.using(frame, f"insert into requests_hot by name select * exclude (arms), {arms} from incoming")
    return list(incident_counts.counts(store, ends, known))


def counted(found: pl.DataFrame) -> dict[tuple[str, str], float]:
    return {(segment, arm): n for segment, arm, n in found.select("segment", "arm", "n").iter_rows()}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def cells(treated: float, control: float, segment: str = SEGMENT) -> pl.DataFrame:
    frame = pl.DataFrame({"arm": ["treated", "control"], "n": [treated, control]})
    return frame.with_columns(pl.lit("speculation").alias("lever"), pl.lit(segment).alias("segment"), pl.lit("requests").alias("metric"))


def incidents(treated: float, control: float, segment: str = SEGMENT) -> pl.DataFrame:
    return cells(treated, control, segment).drop("metric").filter(pl.col("n") > 0)


def played(blocks: Sequence[tuple[float, float]], offered: tuple[float, float] = (1900.0, 100.0)) -> list[tuple[float, float]]:
    """Logarithms of evidence below and above at the end of each block with these incidents of treated and control."""
    streams, said = Streams.start(), []
    for number, (treated, control) in enumerate(blocks, start=1):
        streams, told = advanced(streams, cells(*offered), incidents(treated, control), BEGAN + number * BLOCK)
        said.append(tuple(float(told[f"evidence_{side}"].item()[NO_GAIN]) for side in ("below", "above")))
    return said


def test_a_burst_of_one_replica_is_one_incident_and_accuses_nobody(store: Store) -> None:
    burst = [error(3 + number / 1000, request_id=f"r{number}") for number in range(5_000)]
    (found,) = read(store, burst, [BEGAN + BLOCK])
    assert counted(found) == {(SEGMENT, "treated"): 1.0}
    _, told = advanced(Streams.start(), cells(1900, 100), found, BEGAN + BLOCK)
    assert told["evidence_below"].item()[NO_GAIN] < 1.0


def test_errors_apart_in_time_replica_or_class_are_incidents_of_their_own_up_to_three_of_a_replica(store: Store) -> None:
    apart = [error(1), error(4), error(12), error(14, replica="r1"), error(15, finish_reason="timeout"), error(16, "control", "r2")]
    lasting = [error(100 + 10 * number, replica="down") for number in range(15)]
    (found,) = read(store, [row | {"finish_reason": row.get("finish_reason")} for row in apart + lasting], [BEGAN + BLOCK])
    assert counted(found) == {(SEGMENT, "treated"): 4.0 + MOST_A_BLOCK, (SEGMENT, "control"): 1.0}


def test_an_incident_of_both_arms_is_that_of_the_error_that_ended_first(store: Store) -> None:
    (found,) = read(store, [error(3, "treated"), error(2, "control"), error(4, "treated")], [BEGAN + BLOCK])
    assert counted(found) == {(SEGMENT, "control"): 1.0}


def test_each_block_has_the_errors_that_ended_in_it(store: Store) -> None:
    rows = [error(299), error(301), error(301, started_at=BEGAN - timedelta(hours=3), replica="r1", request_id="long")]
    first, second = read(store, rows, [BEGAN + BLOCK, BEGAN + 2 * BLOCK])
    assert counted(first) == counted(second) == {(SEGMENT, "treated"): 1.0}


def test_segments_are_named_by_the_keys_of_their_lever_and_those_not_told_apart_are_other() -> None:
    window = pl.lit(BEGAN).cast(pl.Datetime("us", "UTC"))
    pairs = [{"key": name, "value": "treated"} for name in ("speculation", "tensor_parallel")]
    row = {
        "model": "m",
        "hardware": "h",
        "topology": "tp8",
        "input_bucket": "<512",
        "temperature_bucket": "<0.3",
        "tenant": "t",
        "replica": "r",
    }
    nothing = pl.Series([None], dtype=pl.List(pl.Struct({"key": pl.String, "value": pl.String})))
    errors = pl.DataFrame([row | {"error_class": "", "arms": pairs}]).with_columns(
        nothing.alias("levers"),
        window.alias("window_started_at"),
        pl.struct(window.alias("ended_at"), pl.lit("r").alias("request_id")).alias("first"),
    )
    of_speculation = '{"hardware":"h","input_bucket":"<512","model":"m","temperature_bucket":"<0.3","topology":"tp8"}'
    of_degrees = '{"hardware":"h","input_bucket":"<512","model":"m"}'
    known = pl.DataFrame({"lever": ["speculation", "tensor_parallel"], "segment": [of_speculation, of_degrees]})
    assert set(named(errors, known)["segment"]) == {of_speculation, of_degrees}
    assert set(named(errors, known.head(1))["segment"]) == {of_speculation, OTHER}
    assert set(named(errors, known.clear(), by_tenant=True)["segment"]) == {OTHER}


def test_three_times_the_incidents_are_found_and_as_many_are_not() -> None:
    rng = np.random.default_rng(2)
    alike = played(list(zip(rng.poisson(9.5, 144), rng.poisson(0.5, 144), strict=True)))
    harmed = played(list(zip(rng.poisson(28.5, 96), rng.poisson(0.5, 96), strict=True)))
    assert max(below for below, _ in alike) < THRESHOLD
    assert harmed[-1][0] > THRESHOLD


def test_control_failing_more_speaks_for_treated() -> None:
    said = played([(9.0, 3.0)] * 60)
    assert said[-1][1] > THRESHOLD > 0 > said[-1][0] - THRESHOLD


def test_errors_that_never_come_are_no_evidence_however_long() -> None:
    said = played([(0.0, 0.0)] * 50)
    assert said[-1] == said[0]
    assert said[-1][0] < -100


def test_what_spoke_against_a_lever_for_long_does_not_grow_without_end() -> None:
    said = played([(60.0, 0.0)] * 60)
    assert said[-1][0] == pytest.approx(THRESHOLD + BEYOND, abs=np.log(5.0))
    assert said[-1][0] == said[-2][0]


def test_a_restart_in_the_middle_and_a_block_seen_twice_change_nothing(store: Store) -> None:
    streams, told = advanced(Streams.start(), cells(1900, 100), incidents(9, 3), BEGAN + BLOCK)
    with store.write() as transaction:
        incident_store.keep(transaction, streams)
    again = incident_store.kept(store)
    assert (again.pairs, again.until) == (streams.pairs, streams.until)
    np.testing.assert_array_equal(again.numbers(), streams.numbers())
    twice, retold = advanced(again, cells(1900, 100), incidents(500, 0), BEGAN + BLOCK)
    np.testing.assert_array_equal(twice.numbers(), streams.numbers())
    assert retold.equals(told)


def test_the_order_of_errors_changes_nothing() -> None:
    rng = np.random.default_rng(7)
    window = [(BEGAN + timedelta(seconds=10 * int(at))) for at in rng.integers(0, 30, 60)]
    rows = [
        {"arms": [{"key": "speculation", "value": str(rng.choice(["treated", "control"]))}], "replica": f"r{place % 4}",
         "window_started_at": at, "first": {"ended_at": at, "request_id": f"{place}"}}
        for place, at in enumerate(window)
    ]  # fmt: skip
    keys = ("hardware", "topology", "input_bucket", "temperature_bucket", "tenant")
    frame = pl.DataFrame(rows).with_columns(
        pl.lit("m").alias("model"), pl.lit("").alias("error_class"), *(pl.lit(None, pl.String).alias(key) for key in keys),
        pl.lit(None, pl.List(pl.Struct({"key": pl.String, "value": pl.String}))).alias("levers"),
    )  # fmt: skip
    told = [named(one, KNOWN).sort(pl.all()) for one in (frame, frame.sample(fraction=1.0, shuffle=True, seed=3))]
    assert told[0].equals(told[1])


def test_segments_do_not_disturb_each_other_and_one_without_control_tells_nothing() -> None:
    other = '{"model":"z"}'
    both = pl.concat([cells(1900, 100), cells(1900, 100, other), cells(50, 0, '{"model":"alone"}')])
    streams, told = advanced(Streams.start(), both, pl.concat([incidents(9, 3), incidents(40, 0, other)]), BEGAN + BLOCK)
    _, alone = advanced(Streams.start(), cells(1900, 100), incidents(9, 3), BEGAN + BLOCK)
    assert [segment for _, segment in streams.pairs] == [SEGMENT, other]
    assert told["tests"].to_list() == [2, 2]
    assert told.filter(segment=SEGMENT).drop("tests").equals(alone.drop("tests"))
    assert told.schema == SCHEMA
