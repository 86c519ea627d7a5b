"""Effects by group: standardized beside pooled, as plain SQL finds them; what misleads is said; arms stay apart."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from fastapi import FastAPI
from lever_cells_rows import BLOCK, LEVER, START, arm_rows, put

from dashboards import api
from leverwatch import lever_effects
from leverwatch.cli import effects_table
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.local import Local
from leverwatch.remote import Remote
from queries.report import ReportError
from queries.store import Store

SHORT = {"model": "m", "input_bucket": "512-2047"}
LONG = {"model": "m", "input_bucket": "2048-8191"}
OTHER = {"model": "other-model", "input_bucket": "512-2047"}
# Requests of a block and control's seconds per token: most of the short prompts are treated, few of the long ones.
MIX = ((SHORT, "treated", 90, 0.01), (SHORT, "control", 30, 0.01), (LONG, "treated", 40, 0.04), (LONG, "control", 80, 0.04))
BLOCKS = 60
HARM = 1.15


def block(number: int, harm: float = HARM) -> list[dict[str, object]]:
    rng = np.random.default_rng([3, number])
    rows = []
    for segment, arm, n, tpot_s in MIX:
        factor = harm if arm == "treated" else 1.0
        rows += arm_rows(rng, segment, arm, number, n, tpot_s * factor, 0.3 * factor, errors=2)
    rows += arm_rows(rng, OTHER, "treated", number, 30, 0.02, 0.2) + arm_rows(rng, OTHER, "control", number, 30, 0.022, 0.2)
    return rows + arm_rows(rng, SHORT, "disabled_in_place", number, 30, 0.0104, 0.3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data")
    held = Store(path)
    put(held, [row for number in range(BLOCKS) for row in block(number)])
    held.close()
    return path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    opened = Store(folder)
    yield opened
    opened.close()


def row(frame: pl.DataFrame, metric: str, arm: str = "treated", **segment: str) -> dict[str, Any]:
    named = json.dumps(segment, separators=(",", ":"), sort_keys=True)
    return frame.filter(metric=metric, arm_a=arm, segment=named).row(0, named=True)


POOLED_AND_STANDARDIZED = """
with arms as (
    select segment, arm, sum(num) / sum(den) as value, sum(num) as num, sum(den) as den
    from cells
    where lever = 'speculation' and metric = $metric and json_extract_string(segment, '$.model') = 'm'
        and block_started_at >= $since and block_started_at < $until
    group by all
),
weights as (
    select segment, sum(n) as requests from cells
    where metric = 'requests' and arm in ('treated', 'control') and json_extract_string(segment, '$.model') = 'm'
        and block_started_at < $since
    group by segment
),
pooled as (select 1 - (sum(num) filter (where arm = 'treated') / sum(den) filter (where arm = 'treated'))
    / (sum(num) filter (where arm = 'control') / sum(den) filter (where arm = 'control')) as gain from arms)
select
    (select gain from pooled) as pooled,
    sum(requests * (1 - t.value / c.value)) / sum(requests) as standardized, min(1 - t.value / c.value) as least
from arms t join arms c using (segment) join weights using (segment)
where t.arm = 'treated' and c.arm = 'control'
"""


@pytest.mark.parametrize("metric", ["tpot_s", "ttft_s", "error_rate"])
def test_pooled_and_standardized_gains_are_those_of_plain_sql(store: Store, metric: str) -> None:
    found = row(lever_effects.effects(store, LEVER, ["model"]), metric, model="m")
    period = {"metric": metric, "since": found["since"], "until": found["until"]}
    assert found["until"] == START + BLOCKS * BLOCK
    assert found["until"] - found["since"] == timedelta(hours=2)
    [said] = store.rows(POOLED_AND_STANDARDIZED, period)
    assert (found["pooled_gain"], found["gain"], found["least_gain"]) == pytest.approx(tuple(said.values()))


def test_a_loss_in_every_stratum_that_pooling_shows_as_a_gain_is_said_to_mislead(store: Store) -> None:
    found = row(lever_effects.effects(store, LEVER, ["model"]), "net_itl_s", model="m")
    assert found["pooled_gain"] > 0.2
    assert -0.2 < found["gain"] < -0.12
    assert found["gain_low"] < found["gain"] < found["gain_high"] < 0
    assert found["greatest_gain"] < 0
    assert (found["is_misleading"], found["strata"], found["blocks"], found["coverage"]) == (True, 2, 24, pytest.approx(1.0))
    assert found["note"].startswith("pooled misleads: it shows +")
    assert "another mix of input_bucket (Simpson)" in found["note"]
    assert "each segment counts by its requests of the 3.0 h before the window" in found["note"]


def test_net_itl_is_charged_with_the_first_token_that_the_lever_delays(store: Store) -> None:
    frame = lever_effects.effects(store, LEVER, ["model"])
    net, plain = (row(frame, metric, model="m") for metric in ("net_itl_s", "tpot_s"))
    assert net["value_a"] > plain["value_a"]
    assert net["value_b"] == plain["value_b"]
    charged = """
    with sums as (
        select segment, block_started_at, arm, sum(num) filter (where metric = 'tpot_s') as busy,
            sum(n) filter (where metric = 'tpot_s') as n, sum(den) filter (where metric = 'tpot_s') as tokens,
            sum(num) filter (where metric = 'ttft_s') / sum(n) filter (where metric = 'ttft_s') as first
        from cells
        where json_extract_string(segment, '$.model') = 'm' and block_started_at >= $since and block_started_at < $until
        group by all
    )
    select sum(t.busy + t.n * greatest(0, t.first - c.first)) / sum(t.tokens) as value
    from sums t join sums c using (segment, block_started_at) where t.arm = 'treated' and c.arm = 'control'
    """
    [said] = store.rows(charged, {"since": net["since"], "until": net["until"]})
    assert net["value_a"] == pytest.approx(said["value"])


def test_the_total_is_one_row_a_metric_over_all_segments(store: Store) -> None:
    total = lever_effects.effects(store, LEVER, total=True)
    assert total.filter(arm_a="treated")["segment"].to_list() == ["{}"] * 4
    found = row(total, "tpot_s")
    assert (found["strata"], found["strata_keys"]) == (3, ["model", "input_bucket"])
    assert sorted(found["strata_segments"])[0] == '{"input_bucket":"2048-8191","model":"m"}'


def test_a_lever_that_is_deployed_but_off_has_a_row_of_its_own_and_is_no_control(store: Store) -> None:
    frame = lever_effects.effects(store, LEVER)
    assert frame["arm_a"].unique().to_list() == ["disabled_in_place"]
    found = row(frame, "tpot_s", "disabled_in_place", **SHORT)
    assert found["gain"] == pytest.approx(-0.04, abs=0.02)
    [said] = store.rows("select sum(n)::bigint as n from cells where arm = 'control' and metric = 'tpot_s' and segment = $segment "
                        "and block_started_at >= $since", {"segment": found["segment"], "since": found["since"]})  # fmt: skip
    assert found["n_b"] == said["n"]


def test_a_period_without_keys_tells_every_judging_segment_apart(store: Store) -> None:
    frame = lever_effects.effects(store, LEVER, since=START, until=START + 12 * BLOCK)
    found = row(frame, "tpot_s", **SHORT)
    assert (found["strata"], found["is_misleading"], found["pooled_gain"]) == (1, False, found["gain"])
    assert "nothing is known of the day before" in found["note"]
    assert found["blocks"] == 11, "the first block of all has nothing to refer to"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"by": ["modell"]}, "did you mean 'model'"),
        ({"by": ["model"], "total": True}, "total is the group of all"),
        ({"since": START + BLOCK, "until": START}, "is empty"),
        ({"until": datetime(1, 1, 1, tzinfo=UTC)}, "is before anything that is kept"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(store: Store, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ReportError, match=said):
        lever_effects.effects(store, LEVER, **asked)


def test_a_period_may_begin_before_anything_was_measured(store: Store) -> None:
    whole = lever_effects.effects(store, LEVER, since=datetime(1, 1, 1, tzinfo=UTC), total=True)
    assert whole["since"].unique().to_list() == [lever_effects.EARLIEST]
    assert whole["n_a"].min() > 0


def test_a_lever_that_nothing_is_known_of_has_no_rows_and_the_same_columns(store: Store) -> None:
    frame = lever_effects.effects(store, "prefix_caching", total=True)
    assert frame.is_empty()
    assert frame.columns == lever_effects.effects(store, LEVER, total=True).columns


def test_the_command_shows_both_numbers_and_why_one_misleads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["effects", "--data", str(folder), "--lever", LEVER, "--by", "model"]
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert "  pooled  " in text.splitlines()[0]
    assert "pooled misleads" in text
    assert "strata_gains" not in text
    assert max(map(len, text.splitlines())) <= effects_table.WIDTH
    assert main([*asked, "--format", "csv"]) == 0
    assert "strata_gains" in capsys.readouterr().out.splitlines()[0]


REQUESTS = """
insert into requests_hot by name
select
    'r' || i as request_id, md5(i::varchar) as trace_id, 'vllm' as engine, 'm' as model, 'ok' as outcome,
    timestamptz '2026-11-29 04:00:00+00' + to_seconds(i) as started_at, started_at + interval 3 second as ended_at,
    case when i % 3 = 0 then 'hit' else 'miss' end as cache_class, 101 as output_tokens,
    case when i % 2 = 0 then 2.0 else 2.5 end as decode_s, case when i % 2 = 0 then 0.5 else 0.4 end as ttft_s,
    map {'speculation': 'on'} as levers, map {'speculation': case when i % 2 = 0 then 'treated' else 'control' end} as arms
from range(600) numbers(i)
"""


def test_keys_that_a_lever_changes_describe_and_claim_no_interval(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "data")
    store = Store(tmp_path / "data")
    with store.write() as transaction:
        transaction.execute(REQUESTS)
    frame = lever_effects.effects(store, LEVER, ["model", "cache_class"])
    store.close()
    assert frame["segment"].unique().sort().to_list() == ['{"cache_class":"hit","model":"m"}', '{"cache_class":"miss","model":"m"}']
    found = row(frame, "tpot_s", cache_class="hit", model="m")
    assert (found["value_a"], found["value_b"], found["gain"]) == pytest.approx((0.02, 0.025, 0.2))
    assert (found["method"], found["gain_low"], found["n_a"], found["n_b"]) == ("descriptive", None, 100, 100)
    assert found["note"].startswith("cache_class is known only after treatment")
    assert row(frame, "error_rate", cache_class="hit", model="m")["gain"] is None


def test_a_server_answers_as_a_folder_does(folder: Path) -> None:
    room = EngineRoom(folder, Config(), clock=lambda: START + BLOCKS * BLOCK)
    application = FastAPI()
    application.include_router(api.router(room, room.sandbox, room.clock, room.studio))

    async def asked(request: httpx.Request) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://test") as client:
            got = await client.get(request.url.raw_path.decode())
        return httpx.Response(got.status_code, content=got.content, headers=got.headers)

    far = Remote("http://127.0.0.1:1")
    far.http = httpx.Client(base_url="http://test", transport=httpx.MockTransport(lambda request: asyncio.run(asked(request))))
    same = ["segment", "metric", "arm_a", "gain", "gain_low", "pooled_gain", "is_misleading", "strata_gains", "note"]
    with Local(room) as near:
        for question in ({"by": "model"}, {"total": True}, {"by": ["model"], "since": "2026-11-29T04:00"}):
            assert far.effects(LEVER, **question).select(same).rows() == near.effects(LEVER, **question).select(same).rows(), question
        error = far.http.get(f"/api/effects?lever={LEVER}&by=model&total=true").json()["error"]
        assert "without keys" in error["message"]
