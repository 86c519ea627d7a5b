"""Judging over stored blocks where operators act: switched off, kept on little traffic, back again; at once or block by block, the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from around_judging import BLOCK, SEGMENT, START, close, end
from effect_evidence import evident_row
from lever_cells_rows import put as put_cells

from alerts import rounds
from alerts.chain import Policy
from alerts.policy import shipped
from alerts.run import run
from queries.store import Store

POLICY = next(policy for policy in shipped() if policy.lever == "weight_quantization")
HARM = next(trigger for trigger in POLICY.disable_when if trigger.metric == "tpot_s")
NOW = START + timedelta(days=2)
GOOD, BAD = (0.15, 0.25), (-0.3, -0.2)
Block = tuple[tuple[float, float] | None, int, int]
"""The gain's interval, None where nothing treated was measured; requests of treated and of control."""


def traffic(store: Store, story: list[Block]) -> None:
    """The cells of a whole story at once: what lies after a block that is judged is not read."""
    rows = []
    for number, (_, treated, control) in enumerate(story):
        common = {"segment": SEGMENT, "block_started_at": START + BLOCK * number, "metric": "requests", "num": 0.0, "den": 0.0}
        for lever, arm, n in ((POLICY.lever, "treated", treated), (POLICY.lever, "control", control), ("", "", treated + control)):
            if n:
                sums = {"num_sq": 0.0, "den_sq": 0.0, "num_den": 0.0}
                rows.append(common | sums | {"lever": lever, "arm": arm, "replica": f"{arm}-0", "n": n})
    put_cells(store, rows)


def put(store: Store, number: int, block: Block) -> None:
    """A block's effects, where treated was measured, and that it was compared."""
    if block[0] is not None:
        effects(store, number, block[0])
    close(store, [number])


def play(store: Store, story: list[Block], policies: tuple[Policy, ...] = (POLICY,)) -> None:
    traffic(store, story)
    for number, block in enumerate(story):
        put(store, number, block)
        judge(store, policies)


def effects(store: Store, number: int, gain: tuple[float, float], blocks: int = 1) -> None:
    """The effects of so many blocks alike, from this one on."""
    rows = [row for each in range(number, number + blocks) for row in effect_rows(each, gain)]
    with store.write() as transaction:
        transaction.insert("effects", pl.DataFrame(rows, infer_schema_length=None))


def effect_rows(number: int, gain: tuple[float, float]) -> list[dict[str, Any]]:
    until = end(number)
    common: dict[str, Any] = {"lever": POLICY.lever, "segment": SEGMENT, "arm_a": "treated", "since": until - 24 * BLOCK, "until": until}
    common |= {"blocks": 24, "n_a": 4000, "n_b": 400, "method": "test", "coverage": 1.0, "arm_b": "control", "basis": "control"}
    common |= {"value_a": 0.02, "value_b": 0.02}
    benefit = {"metric": "tpot_s", "gain": sum(gain) / 2, "gain_low": gain[0], "gain_high": gain[1]}
    other = {"metric": "ttft_s", "gain": 0.0, "gain_low": -0.02, "gain_high": 0.02}
    enabling = POLICY.enabling_condition
    value = enabling.threshold * (0.5 if enabling.is_ == "below" else 1.5)
    alone = {"metric": enabling.metric, "value_a": value, "basis": "premise", "arm_b": None, "n_b": 0, "value_b": None}
    return [evident_row(common | row) for row in (benefit, other, alone)]


def judge(store: Store, policies: tuple[Policy, ...] = (POLICY,), **asked: Any) -> int:
    return run(store, policies, NOW, **asked)


def states(store: Store) -> list[tuple[str, str, str]]:
    rows = store.rows("select state_before, state_after, action from flips order by decided_at")
    return [(row["state_before"], row["state_after"], row["action"]) for row in rows]


FOLLOWED: list[Block] = [
    *[(GOOD, 380, 20)] * 3,
    *[(BAD, 380, 20)] * 4,  # harm
    *[(BAD, 10, 390)] * 4,  # switched off, but for a little
    *[(GOOD, 10, 390)] * 14,  # and there it is good again
    *[(GOOD, 380, 20)] * 30,  # the operator brings it back
]
STORY: list[Block] = [*FOLLOWED[:14], *[(None, 0, 400)] * 8, *FOLLOWED[14:]]
"""The same, with a while in which nobody has it."""


def content(store: Store) -> dict[str, list[dict[str, Any]]]:
    tables = ("verdicts", "current_verdicts", "flips")
    return {table: store.rows(f"select * from {table} order by all") for table in tables}


@pytest.fixture(scope="module")
def block_by_block(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store in which the whole story was judged when each block closed."""
    opened = Store(tmp_path_factory.mktemp("story"))
    play(opened, STORY)
    yield opened
    opened.close()


def test_a_whole_story_goes_through_all_states(block_by_block: Store) -> None:
    assert states(block_by_block) == [
        ("on", "off_recommended", HARM.action),
        ("off_recommended", "off", "hold"),
        ("off", "probation", "enable"),
        ("probation", "on", "keep"),
    ]


@pytest.mark.parametrize("size", [7, 100])
def test_operators_acts_are_judged_alike_at_once_and_block_by_block(block_by_block: Store, store: Store, size: int) -> None:
    traffic(store, STORY)
    for number, block in enumerate(STORY):
        put(store, number, block)
        if number % size == size - 1:
            judge(store)
    judge(store)
    assert content(store) == content(block_by_block)


def test_a_lever_that_is_off_is_judged_where_nothing_treated_is_left(store: Store) -> None:
    play(store, [*FOLLOWED[:7], *[(BAD, 0, 400)] * 3, *[(None, 0, 400)] * 5])
    [row] = store.rows("select verdict, action, reason_code, reason, state, block_ended_at from current_verdicts")
    assert (row["verdict"], row["action"], row["reason_code"], row["state"]) == ("insufficient", "hold", "off_unseen", "off")
    assert row["block_ended_at"] == end(14)
    assert row["reason"].startswith("switched off: 0 of ")


def test_unchanged_input_writes_no_row_of_a_lever_that_is_off(store: Store) -> None:
    play(store, [*FOLLOWED[:11], *[(None, 0, 400)] * 3])
    before = content(store)
    assert judge(store) == 0
    put(store, 14, (None, 0, 0))  # a block of other segments
    assert judge(store) == 0
    assert content(store) == before


def test_a_restart_between_any_two_blocks_goes_on_as_if_there_was_none(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    story = FOLLOWED[4:14]
    play(store, story)
    traffic(other, story)
    for number, block in enumerate(story):
        put(other, number, block)
        judge(other)
        if number % 2:
            other.close()
            other = Store(tmp_path / "other")
    assert content(other) == content(store)
    other.close()


def test_a_flip_says_what_it_advises_how_much_it_matters_and_whether_it_is_only_tried(store: Store) -> None:
    first = msgspec.structs.replace(HARM, severity="critical", action="restore_precision")
    policy = msgspec.structs.replace(POLICY, disable_when=(first,), shadow=True, severity="info")
    play(store, [*FOLLOWED[:7], *[(GOOD, 380, 20)] * 14], (policy,))
    flips = store.rows("select state_after, action, severity, shadow, notice from flips order by decided_at")
    assert [(row["state_after"], row["action"], row["severity"], row["shadow"]) for row in flips] == [
        ("off_recommended", "restore_precision", "critical", True),
        ("on", "keep", "critical", True),
    ]
    notice = json.loads(flips[0]["notice"])
    assert (notice["action"], notice["severity"]) == ("restore_precision", "critical")
    assert notice["commands"]
    assert notice["ledger"]["said"]
    assert json.loads(flips[1]["notice"])["commands"] == []


def test_levers_that_interact_are_recommended_one_after_the_other_over_runs(store: Store) -> None:
    plain = {"disable_when": (HARM,), "gates": (), "advise_when": (), "goes_before": ()}
    one = msgspec.structs.replace(POLICY, **plain, revalidates=("tensor_parallel",), expires_after_s=3600.0)
    for number in range(20):
        effects(store, number, BAD)
        with store.write() as transaction:
            row = {"until": end(number)}
            transaction.execute(
                "insert into effects by name select * replace ('tensor_parallel' as lever, gain + 0.05 as gain) from effects"
                f" where until = $until and lever = '{POLICY.lever}'",
                row,
            )
        other = msgspec.structs.replace(POLICY, **plain, name="tp", lever="tensor_parallel", revalidates=())
        judge(store, (one, other))
    flips = store.rows("select lever, decided_at from flips order by decided_at")
    assert [row["lever"] for row in flips] == [POLICY.lever, "tensor_parallel"]
    assert flips[1]["decided_at"] - flips[0]["decided_at"] == timedelta(hours=1), "the first one expired unanswered"
    [held] = store.rows("select distinct verdict, action from verdicts where reason_code like '%_waits'")
    assert (held["verdict"], held["action"]) == ("conflicted", "hold")


def test_more_traffic_is_advised_once_a_day_as_a_flip_that_changes_no_state(store: Store) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def widening(lever: str, segments: Any, _until: Any) -> dict[str, str]:
        asked.append((lever, tuple(segments)))
        return dict.fromkeys(segments, "may get more traffic: pays by 12 % at least over 26 h")

    effects(store, 0, GOOD, blocks=24 * 12 + 20)
    judge(store, widening=widening)
    flips = store.rows("select state_before, state_after, action, decided_at, reason, notice from flips")
    assert {(row["state_before"], row["state_after"], row["action"]) for row in flips} == {("on", "on", "widen")}
    assert len(flips) == len(asked) in (1, 2)
    assert {row["decided_at"].hour for row in flips} == {rounds.hour_of(POLICY.lever, SEGMENT)}
    assert json.loads(flips[0]["notice"])["commands"] == []
    assert store.rows("select state from current_verdicts") == [{"state": "on"}]
