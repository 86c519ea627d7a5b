from __future__ import annotations

from datetime import timedelta

import polars as pl
from around_judging import BLOCK, SEGMENT, START, end, policy

from alerts import revalidation
from alerts.settings import Change, Place
from queries.store import Store

POLICIES = [policy(), policy(name="kv", lever="kv_quantization", revalidates=("speculation",))]
SCOPE = '{"hardware":"h100","model":"m","topology":"tp4"}'
CHANGE = Change(Place("kv_quantization", SCOPE), "fp8", "bf16", START + BLOCK)


def judged(store: Store, block: int, segment: str = SEGMENT, reason_code: str = "pays") -> None:
    """The stream of a segment as judging a block leaves it, with the effects that were read."""
    row = {"policy": "speculation-net-itl", "policy_version": "1", "lever": "speculation", "segment": segment, "verdict": "keep"}
    row |= {"action": "keep", "reason_code": reason_code, "reason": "", "decided_at": end(block), "block_ended_at": end(block)}
    row |= {"state": "on", "state_since": START, "streak": 0}
    effect = {"lever": "speculation", "segment": segment, "arm_a": "treated", "since": START, "until": end(block), "blocks": 24}
    effect |= {"n_a": 9, "n_b": 9, "method": "t", "basis": "control", "coverage": 1.0}
    with store.write() as transaction:
        transaction.execute("delete from current_verdicts where segment = $segment", {"segment": segment})
        transaction.insert("current_verdicts", pl.DataFrame([row]))
        transaction.insert("effects", pl.DataFrame([effect | {"metric": name} for name in ("net_itl_s", "ttft_s")]))


def test_a_change_lists_the_levers_that_share_its_budgets_where_they_are_judged(store: Store) -> None:
    judged(store, 0)
    assert revalidation.list_changes(store, POLICIES, [CHANGE]) == 1
    [row] = revalidation.listed(store).to_dicts()
    assert (row["lever"], row["changed_from"], row["changed_to"], row["changed_at"]) == ("kv_quantization", "fp8", "bf16", START + BLOCK)
    assert (row["other_lever"], row["policy"], row["scope"], row["blocks_needed"]) == ("speculation", "speculation-net-itl", SCOPE, 3)


def test_a_lever_that_is_not_judged_in_the_scope_is_not_listed_and_a_first_setting_is_no_change(store: Store) -> None:
    judged(store, 0, SEGMENT.replace('"m"', '"other"'))
    assert revalidation.list_changes(store, POLICIES, [CHANGE]) == 0
    judged(store, 0)
    assert revalidation.list_changes(store, POLICIES, [CHANGE._replace(before="")]) == 0


def test_it_is_done_once_every_segment_was_judged_on_enough_blocks_since(store: Store) -> None:
    second = SEGMENT.replace("<512", ">=32768")
    judged(store, 0)
    judged(store, 0, second)
    revalidation.list_changes(store, POLICIES, [CHANGE])
    for block in (1, 2):
        judged(store, block)
    revalidation.close_judged(store, end(2))
    assert revalidation.listed(store)["blocks_seen"].to_list() == [0], "the second segment has none"
    for block in (1, 2, 3):
        judged(store, block, second)
    judged(store, 3)
    judged(store, 4)
    revalidation.close_judged(store, end(4))
    assert revalidation.listed(store).is_empty()
    [row] = revalidation.listed(store, everything=True).to_dicts()
    assert (row["outcome"], row["done_at"]) == ("judged", end(3))
    assert revalidation.close_judged(store, end(5)) == 0, "nothing waits any more"


def test_a_segment_without_traffic_holds_nothing_up_and_what_never_comes_is_given_up(store: Store) -> None:
    judged(store, 0, reason_code="stale")
    revalidation.list_changes(store, POLICIES, [CHANGE])
    revalidation.close_judged(store, end(1) + timedelta(days=6))
    assert len(revalidation.listed(store)) == 1
    revalidation.close_judged(store, end(1) + timedelta(days=8))
    [row] = revalidation.listed(store, everything=True).to_dicts()
    assert (row["outcome"], row["done_at"]) == ("not judged", CHANGE.since + timedelta(days=7))


def test_a_second_change_takes_the_place_of_the_first(store: Store) -> None:
    judged(store, 0)
    later = CHANGE._replace(before="bf16", setting="fp8", since=START + 2 * BLOCK)
    revalidation.list_changes(store, POLICIES, [CHANGE])
    revalidation.list_changes(store, POLICIES, [later])
    rows = revalidation.listed(store, everything=True).to_dicts()
    assert [(row["changed_to"], row["outcome"], row["done_at"]) for row in rows] == [
        ("fp8", None, None),
        ("bf16", "superseded", later.since),
    ]


def test_what_is_due_says_what_changed_and_how_much_is_missing(store: Store) -> None:
    judged(store, 0)
    revalidation.list_changes(store, POLICIES, [CHANGE])
    judged(store, 1)
    revalidation.close_judged(store, end(1))
    assert revalidation.due(store) == {
        ("speculation", SEGMENT): "to be judged again: kv_quantization went from fp8 to bf16 at 2026-03-02T00:05:00Z, 1 of 3 blocks since"
    }
