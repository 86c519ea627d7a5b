"""Deploys: noticed once where a new version takes over, and evidence and break-evens begin anew there, their scale kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from break_even_cells import BLOCK as STEP
from break_even_cells import START, closed, put
from evidence_days import BEGAN, BLOCK, LEVER, SEGMENT, cells, days

from pipeline import break_even_store, deploys
from pipeline.break_even_axes import BATCH
from pipeline.deploys import noticed
from pipeline.evidence import advanced
from pipeline.evidence_families import TIMES
from pipeline.evidence_streams import Streams
from pipeline.segments import Edges
from pipeline.tuning import Deploy, Tuning
from queries.store import Store

Counts = dict[str, int]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def versions(*blocks: Counts, model: str = "m", first: int = 0) -> list[dict[str, Any]]:
    """What each block's requests say: how many of each version."""
    pool = {"model": model, "hardware": None, "engine": "vllm"}
    return [
        {"block_started_at": BEGAN + (first + number) * BLOCK, **pool, "engine_version": name, "n": n}
        for number, counts in enumerate(blocks)
        for name, n in counts.items()
    ]


def told(found: list[Deploy]) -> list[tuple[str, int, bool]]:
    return [(one.engine_version, (one.since - BEGAN) // BLOCK, one.is_change) for one in found]


def test_the_first_version_that_is_seen_is_no_change() -> None:
    assert told(noticed([], versions({"1": 100}, {"1": 100}))) == [("1", 0, False)]


def test_a_rolling_deploy_is_one_change_where_the_new_version_first_serves_most() -> None:
    rolling = versions(*({"1": 100 - share, "2": share} for share in (0, 10, 30, 48, 55, 45, 60, 49, 80, 100)))
    assert told(noticed([], rolling)) == [("1", 0, False), ("2", 4, True)]


def test_a_rollback_is_a_change_once_nine_tenths_are_back() -> None:
    known = noticed([], versions({"1": 100}, {"2": 100}))
    back = versions({"1": 60, "2": 40}, {"1": 89, "2": 11}, {"1": 91, "2": 9}, first=2)
    assert told(noticed(known, back)) == [("1", 4, True)]


def test_a_handful_of_requests_and_blocks_of_before_change_nothing() -> None:
    known = noticed([], versions({"1": 100}, first=5))
    assert noticed(known, versions({"2": 19}, first=6)) == []
    assert noticed(known, versions({"2": 100}, first=4)) == []


def test_models_and_engines_are_deployed_each_for_itself() -> None:
    rows = versions({"1": 100}) + versions({"7": 100}, model="n") + versions({"8": 100}, model="n", first=1)
    found = noticed([], sorted(rows, key=lambda row: row["block_started_at"]))
    assert [(one.model, one.engine_version, one.is_change) for one in found] == [("m", "1", False), ("n", "7", False), ("n", "8", True)]


def played(streams: Streams, made: pl.DataFrame, tuning: Tuning) -> tuple[Streams, list[pl.DataFrame]]:
    found = []
    for (began,), block in made.group_by("block_started_at", maintain_order=True):
        streams, last = advanced(streams, block, began + BLOCK, tuning)  # type: ignore[operator]
        found.append(last)
    return streams, found


def test_evidence_begins_anew_at_a_deploy_and_its_scale_stays() -> None:
    deploy = Deploy("m", None, "vllm", "2", BEGAN + 60 * BLOCK, True)
    made = cells(days(64, 0.0, 3, 0.2)[0])
    streams, found = played(Streams.start(TIMES), made, Tuning(deploys=[deploy]))
    plain, _ = played(Streams.start(TIMES), made, Tuning())
    assert [one["blocks_seen"][1] for one in found[58:]] == [58, 59, 1, 2, 3, 4]
    assert found[59]["evidence_above"][1][3] > 5 > found[60]["evidence_above"][1][3]
    assert all(one["evidence"].null_count() == 0 for one in found[58:])
    np.testing.assert_array_equal(streams.scale.numbers(), plain.scale.numbers())


def test_a_deploy_before_a_pair_was_last_seen_or_of_another_model_changes_nothing() -> None:
    others = [Deploy("n", None, "vllm", "2", BEGAN + 10 * BLOCK, True), Deploy("m", "h100", "vllm", "2", BEGAN + 10 * BLOCK, True)]
    made = cells(days(14, 0.0, 3)[0])
    streams, _ = played(Streams.start(TIMES), made, Tuning(deploys=others))
    plain, _ = played(Streams.start(TIMES), made, Tuning())
    np.testing.assert_array_equal(streams.numbers(), plain.numbers())
    with_other = Tuning(deploys=[Deploy(None, None, "vllm", "2", BEGAN, True)])
    assert with_other.newest('{"segment":"other"}', BEGAN + BLOCK) is None


def test_a_pair_that_was_away_at_the_deploy_begins_anew_when_it_is_seen_again() -> None:
    deploy = Tuning(deploys=[Deploy("m", None, "vllm", "2", BEGAN + 15 * BLOCK, True)])
    streams, _ = played(Streams.start(TIMES), cells(days(10, 0.0, 3)[0]), deploy)
    _, found = played(streams, cells(days(3, 0.0, 4)[0], 20), deploy)
    assert [one["blocks_seen"][1] for one in found] == [1, 2, 3]


def test_effects_say_since_which_deploy_their_evidence_counts_for_a_day() -> None:
    tuning = Tuning(deploys=[Deploy("m", None, "vllm", "0.12.1", BEGAN, True)])
    rows = pl.DataFrame({"segment": [SEGMENT, SEGMENT, '{"model":"n"}'], "note": [None, "few", None]})
    said = "since the deploy of vllm 0.12.1 at 2026-03-02 00:00 UTC"
    assert deploys.with_notes(rows, tuning, BEGAN + BLOCK)["note"].to_list() == [said, f"few; {said}", None]
    assert deploys.with_notes(rows, tuning, BEGAN + 289 * BLOCK)["note"].to_list() == [None, "few", None]


def test_break_evens_begin_anew_at_a_deploy_and_say_what_they_said_before(store: Store) -> None:
    gains = {"<2": 0.4, "2-3": 0.2, "4-7": -0.2}
    put(store, range(50), {("m", None): gains})
    ends = [START + STEP * number for number in range(1, 51)]
    compared = pl.DataFrame({"lever": [LEVER], "segment": [SEGMENT]})
    tuning = Tuning(deploys=[Deploy("m", None, "vllm", "0.12.1", START + STEP * 40, True)])
    found = break_even_store.learned(store, ends, compared, Edges(batch=(2, 4, 8)), tuning)
    before, now = next(one for one in found if one.axis.key == BATCH).rows.sort("since").to_dicts()
    assert (before["state"], before["until"], before["pays_edge"]) == ("stale", START + STEP * 40, None)
    assert before["note"].startswith("ended by the deploy of vllm 0.12.1 at 2026-11-29 03:20 UTC; before: pays up to 2-3")
    assert (now["since"], now["blocks"][0]) == (START + STEP * 41, 9)


def test_a_deploy_is_kept_with_the_effects_of_its_block_and_they_say_so(store: Store) -> None:
    put(store, range(8), {("m", None): {"<2": 0.1}})
    rows = [
        {"request_id": f"{block}-{number}", "trace_id": f"{block}-{number}", "engine": "vllm", "engine_version": "1" if block < 5 else "2"}
        | {"started_at": START + STEP * block, "ended_at": START + STEP * block, "outcome": "ok", "model": "m"}
        for block in range(8)
        for number in range(25)
    ]
    with store.write() as transaction:
        transaction.insert("requests_hot", pl.DataFrame(rows))
    closed(store, 3)
    closed(store, 8)
    assert [(row["engine_version"], row["since"]) for row in store.rows("select * from deploys order by since")] == [
        ("1", START),
        ("2", START + STEP * 5),
    ]
    told = store.rows("select blocks_seen, note from effects where metric = 'tpot_s' order by until")
    assert [row["blocks_seen"] for row in told] == [0, 0, 0, 1, 1, 0, 1, 1]  # two blocks a contrast, the first one only teaches
    assert [row["note"] for row in told[4:6]] == [None, "since the deploy of vllm 2 at 2026-11-29 00:25 UTC"]


def test_versions_are_counted_from_the_requests_of_the_blocks_and_kept(store: Store) -> None:
    rows = [
        {"request_id": f"{block}-{number}", "trace_id": f"{block}-{number}", "engine": "vllm", "engine_version": version, "model": "m"}
        | {"started_at": BEGAN + block * BLOCK, "ended_at": BEGAN + block * BLOCK, "outcome": "ok"}
        for block, version in enumerate(("1", "1", "2"))
        for number in range(25)
    ]
    with store.write() as transaction:
        transaction.insert("requests_hot", pl.DataFrame(rows))
    tuning, new = deploys.tuned(store, [BEGAN + BLOCK, BEGAN + 2 * BLOCK])
    assert (told(new), tuning.deploys) == ([("1", 0, False)], [])
    with store.write() as transaction:
        deploys.keep(transaction, new)
    tuning, new = deploys.tuned(store, [BEGAN + 3 * BLOCK])
    assert told(new) == [("2", 2, True)]
    assert tuning.deploys == new
