from __future__ import annotations

import pytest
from around_judging import SEGMENT, cells, end, policy

from alerts import ledger
from alerts.chain import ReceivingBudget
from alerts.ledger import Entry, Ledger
from queries.store import Store

CONTROL = {"queue_s": 0.10, "prefill_s": 0.30, "decode_share": 2.0, "e2e_s": 2.5, "ttft_s": 0.45, "gpu_s_per_output_token": 0.010}
TREATED = {"queue_s": 0.15, "prefill_s": 0.36, "decode_share": 1.5, "e2e_s": 2.11, "ttft_s": 0.55, "gpu_s_per_output_token": 0.012}


def by_metric(found: Ledger) -> dict[str, Entry]:
    return {row.metric: row for row in found.rows}


def test_what_was_saved_and_which_budget_grew_add_up_to_the_whole(store: Store) -> None:
    for block in range(2):
        cells(store, block, "treated", 90, TREATED)
        cells(store, block, "control", 10, CONTROL)
    found = ledger.read(store, policy(), SEGMENT, end(1))
    rows = by_metric(found)
    assert {name: rows[name].change for name in ("queue_s", "prefill_s", "decode_s", "e2e_s")} == pytest.approx(
        {"queue_s": 0.05, "prefill_s": 0.06, "decode_s": -0.5, "e2e_s": -0.39}
    )
    assert rows["unexplained"].change == pytest.approx(0.0)
    assert rows["decode_s"].share == pytest.approx(-0.2)
    shares = [rows[name].share for name in ("queue_s", "prefill_s", "decode_s", "unexplained")]
    assert sum(share for share in shares if share is not None) == pytest.approx(rows["e2e_s"].share)
    assert (rows["decode_s"].budget, rows["prefill_s"].budget, rows["queue_s"].budget) == ("memory_bandwidth", "compute", None)
    assert (rows["ttft_s"].budget, rows["ttft_s"].share) == ("compute", pytest.approx(0.1 / 0.45))
    assert found.said == (
        "of 2.5 s a request treated takes 390 ms less (-16 %): decode -500 ms, queue +50 ms, prefill +60 ms; 0 ms unexplained; "
        "compute, which speculation presses on: TTFT 550 ms against 450 ms (+22 %); GPU time per output token 12 ms against 10 ms (+20 %)"
    )


def test_what_no_phase_explains_is_said(store: Store) -> None:
    cells(store, 0, "treated", 90, {"e2e_s": 3.0, "decode_share": 1.0})
    cells(store, 0, "control", 10, {"e2e_s": 2.0, "decode_share": 1.2})
    rows = by_metric(ledger.read(store, policy(), SEGMENT, end(0)))
    assert rows["unexplained"].change == pytest.approx(1.2)
    assert rows["unexplained"].share == pytest.approx(0.6)
    assert "prefill_s" not in rows, "what is not known is no row"


def test_control_weighs_as_treated_does_block_by_block(store: Store) -> None:
    for block, (n, busy) in enumerate(((90, 1.0), (10, 5.0))):
        cells(store, block, "treated", n, {"e2e_s": busy})
        cells(store, block, "control", 100 - n, {"e2e_s": 2 * busy})
    [whole] = [row for row in ledger.read(store, policy(), SEGMENT, end(1)).rows if row.metric == "e2e_s"]
    assert (whole.treated, whole.control) == pytest.approx((1.4, 2.8)), "a mix of other blocks would say that treated gains far more"


def test_a_request_that_ships_nothing_has_no_transfer(store: Store) -> None:
    cells(store, 0, "treated", 100, {"e2e_s": 2.0})
    cells(store, 0, "treated", 50, {"transfer_share": 0.4})
    cells(store, 0, "control", 10, {"e2e_s": 2.0})
    split = policy(lever="speculation", receiving_budget=ReceivingBudget(budget="communication", metric="affinity_load_spread"))
    row = by_metric(ledger.read(store, split, SEGMENT, end(0)))["kv_transfer_s"]
    # 50 of the 150 requests counted shipped for 0.4 s each
    assert (row.treated, row.control, row.budget) == (pytest.approx(20 / 150), 0.0, "communication")


def test_without_control_there_is_no_ledger(store: Store) -> None:
    cells(store, 0, "treated", 100, TREATED)
    assert ledger.read(store, policy(), SEGMENT, end(0)) == Ledger(
        (), "no budget ledger: no block has 5 requests with a whole time in each arm"
    )


def test_several_are_read_together_each_as_alone(store: Store) -> None:
    second = SEGMENT.replace("<512", ">=32768")
    for segment, busy in ((SEGMENT, 1.0), (second, 2.0)):
        cells(store, 0, "treated", 90, {"e2e_s": busy}, segment=segment)
        cells(store, 0, "control", 10, {"e2e_s": 1.0}, segment=segment)
    asked = [(policy(), second, end(0)), (policy(), SEGMENT, end(0)), (policy(), "{}", end(0)), (policy(), second, end(40))]
    assert ledger.read_all(store, asked) == [ledger.read(store, *one) for one in asked]
    assert [len(one.rows) for one in ledger.read_all(store, asked)] == [2, 2, 0, 0]
