from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from around_judging import BLOCK, SEGMENT, START, cell_rows, close, end, flip, put

from alerts.debt import debt
from queries.store import Store


def served(store: Store, blocks: range, treated_n: int = 90, control_n: int = 10) -> None:
    """Each treated request takes 0.1 s longer to its first token than control, and 1 ms more a token of 100 tokens."""
    rows = []
    for block in blocks:
        if treated_n:
            rows += cell_rows(block, "treated", treated_n, {"ttft_s": 0.5, "tpot_s": 0.031, "output_length": 100.0})
        if control_n:
            rows += cell_rows(block, "control", control_n, {"ttft_s": 0.4, "tpot_s": 0.030, "output_length": 100.0})
    put(store, rows)
    close(store, blocks)


def owed(store: Store, **period: Any) -> dict[str, Any]:
    [row] = debt(store, **period).to_dicts()
    return row


def test_what_went_on_while_it_was_recommended_off_is_counted_with_what_it_lost(store: Store) -> None:
    served(store, range(24))
    flip(store, 5, "on", "off_recommended", action="shorten")
    flip(store, 17, "off_recommended", "on")
    row = owed(store)
    assert (row["policy"], row["lever"], row["segment"], row["action"]) == ("speculation-net-itl", "speculation", SEGMENT, "shorten")
    assert (row["since"], row["until"], row["stood_s"], row["treated_s"]) == (end(5), end(17), 3600.0, 3600.0)
    assert (row["requests"], row["tokens"]) == (12 * 90, 12 * 90 * 100)
    # per request 0.1 s to the first token; cells here hold TPOT as the mean of one token a request: 0.001 s
    assert row["lost_s"] == pytest.approx(12 * 90 * (0.1 + 0.001))
    assert row["compared_share"] == 1.0


def test_once_it_is_switched_off_no_more_is_owed(store: Store) -> None:
    served(store, range(12))
    served(store, range(12, 24), treated_n=0, control_n=100)
    flip(store, 5, "on", "off_recommended")
    row = owed(store)
    assert (row["stood_s"], row["treated_s"], row["requests"]) == (18 * 300.0, 6 * 300.0, 6 * 90)


def test_a_recommendation_that_stands_counts_up_to_the_end_of_the_period(store: Store) -> None:
    served(store, range(24))
    flip(store, 5, "on", "off_recommended")
    assert owed(store, until=end(11))["stood_s"] == 6 * 300.0
    assert owed(store, since=end(17))["requests"] == 6 * 90
    assert debt(store, since=START - timedelta(days=1), until=end(3)).is_empty()


def test_of_a_policy_that_was_removed_nothing_is_owed_after_the_last_block_it_judged(store: Store) -> None:
    served(store, range(24))
    flip(store, 5, "on", "off_recommended")
    with store.write() as transaction:
        transaction.execute(
            "insert into current_verdicts by name select policy, '2' as policy_version, lever, segment, 'disable' as verdict, action,"
            " 'harm' as reason_code, reason, decided_at, $until as block_ended_at, state_after as state, decided_at as state_since,"
            " 0 as streak from flips",
            {"until": end(11)},
        )
    assert owed(store)["stood_s"] == 6 * 300.0
    assert owed(store, until=end(9))["stood_s"] == 4 * 300.0


def test_without_control_it_is_not_known_what_was_lost(store: Store) -> None:
    served(store, range(12), control_n=0)
    flip(store, 5, "on", "off_recommended")
    row = owed(store)
    assert (row["lost_s"], row["compared_share"], row["requests"]) == (None, 0.0, 6 * 90)


def test_a_policy_that_notifies_nobody_owes_nothing(store: Store) -> None:
    served(store, range(12))
    flip(store, 5, "on", "off_recommended", shadow=True)
    assert debt(store).is_empty()


def test_times_of_several_recommendations_add_up_and_advice_for_more_traffic_ends_none(store: Store) -> None:
    served(store, range(24))
    for block, before, after in (
        (0, "on", "off_recommended"),
        (2, "off_recommended", "on"),
        (10, "on", "on"),
        (11, "on", "off_recommended"),
    ):
        flip(store, block, before, after)
    row = owed(store)
    assert (row["stood_s"], row["requests"]) == ((2 + 12) * 300.0, 14 * 90)


def test_where_blocks_were_summed_up_and_dropped_the_hours_tell(store: Store) -> None:
    served(store, range(36))
    flip(store, 11, "on", "off_recommended")
    flip(store, 23, "off_recommended", "on")
    hours = (
        "insert into hour_cells by name select series_id, date_trunc('hour', started_at) as started_at, metric_id, "
        "sum(known)::bigint as known, sum(n)::bigint as n, sum(num) as num, sum(den) as den, sum(num_sq) as num_sq, "
        "sum(den_sq) as den_sq, sum(num_den) as num_den, "
        "sum(times) as times from block_cells group by all"
    )
    with store.write() as transaction:
        transaction.execute(hours)
        transaction.execute("delete from block_cells where started_at < $moment", {"moment": START + 24 * BLOCK})
    row = owed(store)
    assert (row["stood_s"], row["treated_s"], row["requests"]) == (3600.0, 3600.0, 12 * 90)
    assert row["lost_s"] == pytest.approx(12 * 90 * (0.1 + 0.001))
