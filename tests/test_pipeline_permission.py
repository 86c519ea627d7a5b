"""Fixed control replicas decide nothing, rotating ones do, and arms that are split otherwise than meant freeze: from cells to verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from replica_cells import BLOCK, START, compared, fixed, put, rotating, segment, verdicts

from pipeline import arm_split, permission_store
from pipeline.arm_split import Holdout
from queries.store import Store

BLOCKS = 72
SPREAD = [0.0, 0.0, *np.tile([-0.02, 0.0, 0.02], 4)]
SPLIT = Holdout("speculation", 0.2, model="split")
MENDED = Holdout("speculation", 0.2, model="mended")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Fleets side by side in one folder: one model each, compared and judged at once."""
    opened = Store(tmp_path_factory.mktemp("fleets"))
    blocks = range(BLOCKS)
    put(opened, blocks, fixed(), [-0.05, 0.0, 0.0, 0.0], model="fixed")
    put(opened, blocks, rotating(4), [-0.05, 0.0, 0.0, 0.0], model="rotating")
    put(opened, blocks, rotating(4), [-0.05, 0.0, 0.0, 0.0], gain=-0.15, model="harmed")
    put(opened, blocks, fixed(2), SPREAD, gain=-0.02, model="within")
    put(opened, blocks, fixed(2), SPREAD, gain=-0.3, model="beyond")
    put(opened, blocks, lambda *_: (400, 100), [0.0, 0.1], gain=0.2, model="split")
    put(opened, blocks, lambda block, _: (400, 100) if not 30 <= block < 40 else (470, 30), [0.0, 0.1], gain=0.2, model="mended")
    compared(opened, BLOCKS, [SPLIT, MENDED])
    yield opened
    opened.close()


def last(store: Store, model: str, metric: str = "net_itl_s") -> dict[str, object]:
    asked = "select * from effects where segment = $segment and metric = $metric order by until desc limit 1"
    return store.rows(asked, {"segment": segment(model), "metric": metric})[0]


def reason(store: Store, model: str) -> str:
    found: str = store.rows("select reason from current_verdicts where segment = $segment", {"segment": segment(model)})[0]["reason"]
    return found


def test_a_fixed_control_replica_that_is_faster_by_itself_decides_nothing_and_says_what_it_takes(store: Store) -> None:
    assert {code for _, code in verdicts(store, "fixed")} == {"few_blocks", "rotation_unseen", "fixed_control"}
    assert {verdict for verdict, _ in verdicts(store, "fixed")} == {"insufficient"}
    assert "needs control to rotate within 30 min" in reason(store, "fixed")
    assert "in control, gain -" in reason(store, "fixed")


def test_the_same_replicas_taking_turns_accuse_no_lever(store: Store) -> None:
    assert (last(store, "rotating")["permission"], last(store, "rotating")["margin"]) == ("rotating", 0.0)
    assert verdicts(store, "rotating")[-1] == ("keep", "no_harm")


def test_harm_is_found_while_control_takes_turns(store: Store) -> None:
    assert ("disable", "harm") in verdicts(store, "harmed")


def test_a_fixed_control_of_a_fleet_whose_spread_is_known_decides_only_beyond_it(store: Store) -> None:
    """2 of 14 replicas are control, the others differ by 1.7 %: three times that, by the replicas of both arms, is no lever's."""
    for model in ("within", "beyond"):
        assert last(store, model)["permission"] == "widened_null"
        assert last(store, model)["margin"] == pytest.approx(3 * 0.017 * np.sqrt(1 / 2 + 1 / 12), rel=0.3)
    assert "disable" not in {verdict for verdict, _ in verdicts(store, "within")}
    assert "fixed control replicas may make" in reason(store, "within")
    assert ("disable", "harm") in verdicts(store, "beyond")


def test_a_metric_whose_spread_between_replicas_is_not_told_decides_nothing_on_a_fixed_control(store: Store) -> None:
    found = permission_store.learned(store, [START + BLOCK * BLOCKS]).permissions()
    within = found.filter(pl.col("pool").str.contains("within")).select("spread", "permission").rows()
    told = dict.fromkeys(("net_itl_s", "tpot_s", "ttft_s", "e2e_s"), "widened_null")
    assert dict(within) == told | {"": "refused", "error_rate": "refused"}


def test_arms_that_are_split_by_request_decide_at_once_and_a_split_as_intended_is_let_be(store: Store) -> None:
    row = last(store, "split")
    assert (row["permission"], row["sample_ratio_off"], row["intended_control_share"]) == ("same_replicas", False, pytest.approx(0.2))
    assert row["control_share"] == pytest.approx(0.2)
    assert verdicts(store, "split")[-1] == ("keep", "pays")


def test_a_broken_split_freezes_without_accusing_the_lever_and_is_free_again_once_it_is_mended(store: Store) -> None:
    said = verdicts(store, "mended")
    assert ("frozen", "sample_ratio") in said
    assert said[-1] == ("keep", "pays")
    asked = "select until from effects where segment = $segment and metric = 'net_itl_s' and sample_ratio_off order by until"
    frozen = [row["until"] for row in store.rows(asked, {"segment": segment("mended")})]
    assert START + BLOCK * 30 < frozen[0] <= START + BLOCK * 34
    assert frozen[-1] < START + BLOCK * BLOCKS


def test_without_a_stated_share_nothing_is_said_of_the_split(store: Store) -> None:
    row = last(store, "rotating")
    assert [row[name] for name in ("sample_ratio_off", "control_share", "intended_control_share")] == [None] * 3


def test_blocks_that_come_one_by_one_are_kept_as_those_that_come_together(tmp_path: Path) -> None:
    ends, found = [START + BLOCK * number for number in range(1, 17)], []
    for name, runs in (("together", [ends]), ("apart", [[end] for end in ends])):
        opened = Store(tmp_path / name)
        put(opened, range(16), rotating(4), [0.0] * 4)
        for run in runs:
            permitted = permission_store.learned(opened, run)
            with opened.write() as transaction:
                permission_store.keep(transaction, permitted)
        found.append(
            (opened.frame("select * from replica_blocks order by all"), permitted.permissions().filter(pl.col("until") == ends[-1]))
        )
        opened.close()
    assert all(one.equals(other) for one, other in zip(*found, strict=True))


def test_what_is_kept_is_one_cycle(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    put(opened, range(0, 600, 50), fixed(), [0.0, 0.0])
    for number in range(0, 600, 50):
        permitted = permission_store.learned(opened, [START + BLOCK * (number + 1)])
        with opened.write() as transaction:
            permission_store.keep(transaction, permitted)
    rows = opened.rows("select count(*) as n, min(block_started_at) as oldest from replica_blocks")
    opened.close()
    assert rows == [{"n": 12, "oldest": START + BLOCK * 300}]


def test_a_late_block_far_back_is_told_by_what_lay_before_it_and_costs_no_more(tmp_path: Path) -> None:
    opened = Store(tmp_path)
    put(opened, range(3), fixed(), [0.0, 0.0])
    put(opened, range(9_000, 9_010), rotating(2), [0.0, 0.0])
    ends = [START + BLOCK * number for number in (1, 2, 3, *range(9_001, 9_011))]
    found = permission_store.learned(opened, ends)
    opened.close()
    assert [len(near) for near, _ in found.grids] == [3, 10]
    assert found.permissions().filter(spread="")["permission"].to_list() == ["unseen"] * 9 + ["rotating"] * 4
    assert max(grid.counts[0].size for _, grid in found.grids) < 700


def test_a_split_is_watched_the_same_after_a_restart() -> None:
    holdouts = [Holdout("speculation", 0.2)]
    counted = pl.DataFrame({"lever": ["speculation"], "segment": ["{}"], "treated": [800], "control": [190]})
    splits = arm_split.Splits.of_numbers((), (), np.zeros((0, arm_split.WIDTH)))
    for number in range(5):
        splits, _ = arm_split.advanced(splits, counted, START + BLOCK * number, holdouts)
    again = arm_split.Splits.of_numbers(splits.pairs, splits.until, splits.numbers())
    np.testing.assert_array_equal(again.numbers(), splits.numbers())
    same, _ = arm_split.advanced(splits, counted, splits.until[0], holdouts)
    np.testing.assert_array_equal(same.numbers(), splits.numbers())
    assert arm_split.joined(splits, [Holdout("speculation", 0.1)]).pairs == ()
