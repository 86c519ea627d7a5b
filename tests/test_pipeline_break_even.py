"""Break-evens from cells: kept from block to block, the same after a restart, told in numbers and words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pipeline_requests import BEGAN, frame_of, stored

from pipeline import break_even_rows, break_even_state, cell_store, measure
from pipeline.break_even_axes import AXES, BATCH, INPUT_TOKENS, Axis, buckets
from pipeline.break_even_state import Kept
from pipeline.metrics import by_name
from pipeline.segments import LEVERS, Edges, bucket
from queries import contexts, files
from queries.store import Store

START = datetime(2026, 11, 29, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
SPECULATION = AXES[0]
BATCHES = buckets(BATCH, Edges(batch=(2, 4, 8, 16)))
GAINS = {"<2": 0.4, "2-3": 0.25, "4-7": 0.1, "8-15": -0.02, ">=16": -0.2}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def block(number: int, gains: dict[str, float] = GAINS, segments: Sequence[str] = ("{}",)) -> pl.DataFrame:
    """Cells of one block: time per output token in both arms of each bucket, with a level that the block shares."""
    drawn = np.random.default_rng(number)
    level, rows = 0.02 * float(np.exp(drawn.normal(0, 0.1))), []
    for segment in segments:
        for name, gain in gains.items():
            for arm, n, factor in (("treated", 400.0, 1 - gain), ("control", 60.0, 1.0)):
                mean = level * factor * (1 + float(drawn.normal(0, 0.3)) / np.sqrt(n))
                den = n * 100
                rows.append((
                    "speculation", segment, name, arm, n, mean * den, den, n * (mean * 100) ** 2 * 1.09, n * 100**2, n * mean * 100**2
                ))  # fmt: skip
    schema = ["lever", "segment", "bucket", "arm", *break_even_state.SUMS]
    return pl.DataFrame(rows, schema=schema, orient="row")


def advanced(kept: Kept, cells: pl.DataFrame, number: int) -> Kept:
    return break_even_state.advanced(kept, cells, BATCHES.names, START + BLOCK * (number + 1), lower_is_better=True, falls=True)


def after(blocks: range, kept: Kept | None = None, segments: Sequence[str] = ("{}",)) -> Kept:
    kept = kept or Kept.start((), len(BATCHES.names))
    for number in blocks:
        kept = advanced(kept, block(number, segments=segments), number)
    return kept


def told(kept: Kept, axis: Axis = SPECULATION) -> dict[str, Any]:
    return break_even_rows.rows(kept, axis, BATCHES).row(0, named=True)


def test_the_row_says_up_to_where_a_lever_pays_and_from_where_it_loses() -> None:
    row = told(after(range(60)))
    assert row["signs"][:3] == ["pays"] * 3
    assert row["signs"][4] == "loses"
    assert (row["pays_edge"], row["loses_edge"]) == (7, 16)
    assert (row["state"], row["note"]) == ("partly", "pays up to 4-7, loses from >=16 on, not resolved yet between")
    assert 7 < row["point"] < 12
    assert row["blocks"] == [59] * 5  # the first block only teaches
    assert row["gains"] == pytest.approx(list(GAINS.values()), abs=0.03)
    assert all(low < gain < high for low, gain, high in zip(row["gains_low"], GAINS.values(), row["gains_high"], strict=True))


def test_every_segment_has_a_row_of_its_own() -> None:
    segments = ('{"model":"a"}', '{"model":"b"}', '{"model":"c"}')
    kept = after(range(30), segments=segments)
    found = break_even_rows.rows(kept, SPECULATION, BATCHES)
    assert found["segment"].to_list() == list(segments)
    assert found["buckets"].to_list() == [list(BATCHES.names)] * 3
    alone = Kept.of_numbers(kept.pairs[1:2], kept.since[1:2], kept.until[1:2], kept.numbers()[1:2])
    assert break_even_rows.rows(alone, SPECULATION, BATCHES).equals(found[1:2])


def test_an_hour_of_few_blocks_is_not_resolved_yet_and_says_so() -> None:
    row = told(after(range(3)))
    assert (row["state"], row["note"], row["point"]) == ("not resolved yet", "not resolved yet in any bucket", None)
    assert row["gains_low"] == [None] * 5


def test_a_restart_goes_on_exactly_where_it_stopped() -> None:
    segments = ('{"model":"a"}', '{"model":"b"}')
    whole, half = after(range(20), segments=segments), after(range(10), segments=segments)
    again = Kept.of_numbers(half.pairs, half.since, half.until, np.array(half.numbers().tolist()))
    again = after(range(10, 20), again, segments)
    assert again.pairs == whole.pairs
    assert (again.since, again.until) == (whole.since, whole.until)
    np.testing.assert_array_equal(again.numbers(), whole.numbers())
    empty = Kept.of_numbers((), (), (), Kept.start((), 5).numbers())
    np.testing.assert_array_equal(after(range(20), empty, segments).numbers(), whole.numbers())


def test_cells_in_any_order_and_a_block_seen_before_change_nothing() -> None:
    first, again = after(range(10)), Kept.start((), len(BATCHES.names))
    for number in range(10):
        again = advanced(again, block(number).sample(fraction=1.0, shuffle=True, seed=number), number)
        again = advanced(again, block(number), number)
    np.testing.assert_array_equal(first.numbers(), again.numbers())


def test_a_segment_is_alike_alone_and_among_others() -> None:
    both = Kept.start((), len(BATCHES.names))
    for number in range(12):
        other = block(number + 1000).with_columns(pl.lit('{"model":"z"}').alias("segment"))
        both = advanced(both, pl.concat([block(number), other] if number > 3 else [block(number)]), number)
    alone = after(range(12))
    np.testing.assert_array_equal(both.numbers()[both.pairs.index(("speculation", "{}"))], alone.numbers()[0])
    assert both.since[1] == START + BLOCK * 5


def test_a_new_epoch_forgets_what_the_one_before_knew_and_its_refutation() -> None:
    kept = Kept.start((), len(BATCHES.names))
    rising = dict(zip(GAINS, (-0.2, 0.3, 0.3, 0.3, 0.3), strict=True))
    for number in range(40):
        kept = advanced(kept, block(number, rising), number)
    row = told(kept)
    assert (row["state"], row["pays_edge"], row["point"]) == ("refuted", None, None)
    assert row["note"].startswith("the gain does not go one way along the buckets: pays in 2-3")
    begun = break_even_state.restarted(kept, {("speculation", "{}")}, START + BLOCK * 40)
    assert told(begun)["state"] == "not resolved yet"
    assert begun.since == (START + BLOCK * 40,)
    assert break_even_state.restarted(kept, set(), START).numbers().tolist() == kept.numbers().tolist()


def test_arms_or_buckets_that_are_missing_leave_a_pair_out() -> None:
    cells = block(0)
    kept = Kept.start((), len(BATCHES.names))
    assert advanced(kept, cells.filter(pl.col("arm") == "treated"), 0).pairs == ()
    assert advanced(kept, cells.with_columns(pl.lit("64-127").alias("bucket")), 0).pairs == ()
    assert advanced(kept, cells.clear(), 0).pairs == ()
    assert break_even_rows.rows(kept, SPECULATION, BATCHES).is_empty()


def test_a_gain_that_rises_pays_from_an_edge_on() -> None:
    axis = Axis("prefix_caching", INPUT_TOKENS, "ttft_s", falls=False)
    kept = Kept.start((), len(BATCHES.names))
    rising = dict(zip(GAINS, (-0.2, -0.2, 0.0, 0.2, 0.3), strict=True))
    for number in range(40):
        ended = START + BLOCK * (number + 1)
        kept = break_even_state.advanced(kept, block(number, rising), BATCHES.names, ended, lower_is_better=True, falls=False)
    row = told(kept, axis)
    assert (row["pays_edge"], row["loses_edge"]) == (8, 3)
    assert row["note"] == "pays from 8-15 on, loses up to 2-3, not resolved yet between"


def test_a_descriptive_key_is_marked_as_one() -> None:
    judged, shown = (told(after(range(3)), axis)["basis"] for axis in (SPECULATION, AXES[-1]))
    assert (judged, shown) == ("control", "descriptive")


def test_axes_name_levers_and_metrics_that_exist_and_buckets_as_requests_have_them() -> None:
    assert {axis.lever for axis in AXES} <= set(LEVERS)
    assert all(by_name()[axis.metric].better == "lower" for axis in AXES)
    for key, edges in ((BATCH, Edges().batch), (INPUT_TOKENS, Edges().input_tokens)):
        held = buckets(key, Edges())
        values = pl.DataFrame({"value": [*held.least, *(most for most in held.most if most is not None)]})
        named = values.select(bucket("value", edges)).to_series().to_list()
        assert named == [*held.names, *held.names[:-1]]


def requests() -> pl.DataFrame:
    """Requests of both arms, of two input buckets and three batches."""
    rows = [
        {"replica": "r", "model": "m", "arm": ("treated", "control")[n % 2], "after_s": n, "outcome": "ok", "decode_s": 2.0,
         "output_tokens": 101, "prompt_tokens": (300, 3000)[n % 4 // 2], "ttft_s": 0.2}
        for n in range(120)
    ]  # fmt: skip
    return frame_of(rows).with_columns(
        pl.Series("input_bucket", ["<512", "2048-8191"] * 60).sort(), pl.Series("batch_bucket", ["1", "2-3", "4-7"] * 40)
    )


def test_cells_are_asked_for_by_batch_and_by_input_length_under_the_segment_without_it(store: Store) -> None:
    made = measure.cells(requests())
    with store.write() as transaction:
        cell_store.add(transaction, made, 1)
    params = {"lever": "speculation", "metric": "tpot_s", "since": BEGAN, "until": BEGAN + BLOCK}
    by_batch, by_input = (store.frame(files.question(f"break_even_{name}"), params) for name in ("batches", "inputs"))
    assert by_batch.group_by("bucket").agg(pl.col("n").sum()).sort("bucket").rows() == [("1", 40), ("2-3", 40), ("4-7", 40)]
    assert by_input.group_by("segment", "bucket").agg(pl.col("n").sum()).sort("bucket").rows() == [
        ('{"model":"m"}', "2048-8191", 60),
        ('{"model":"m"}', "<512", 60),
    ]
    assert by_input["den"].sum() == 120 * 100
    kept = Kept.start((), len(BATCHES.names))
    assert advanced(kept, by_batch.drop("metric"), 0).pairs == tuple(sorted(by_batch.select("lever", "segment").unique().rows()))


def test_contexts_are_told_by_arm_and_bucket(store: Store) -> None:
    with store.write() as transaction:
        rows = stored(requests()).drop("input_bucket").with_columns(pl.lit("treated").alias("arm"))
        transaction.using(
            rows, "insert into requests_hot by name select * exclude (arm), map {'kv_quantization': arm} as arms from incoming"
        )
    held = buckets("context_tokens", Edges())
    params = {"lever": "kv_quantization", "since": BEGAN, "until": BEGAN + BLOCK, "block_s": 300}
    found = store.frame(contexts.statement(), params | {"names": list(held.names), "edges": list(held.least[1:])})
    assert found.select("arm", "bucket", "n").sort("bucket").rows() == [("treated", "2048-8191", 60), ("treated", "<512", 60)]
