"""What is followed around judging, from requests on, and how it is asked for: over HTTP, from a folder, by the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from around_judging import BLOCK, SEGMENT, START, cell_rows, close, end, flip, policy, put, serve
from fastapi import FastAPI

from alerts import api_around, follow_up
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.local import Local
from leverwatch.remote import Remote
from queries.store import Store

POLICIES = [policy(), policy(name="kv", lever="kv_quantization", revalidates=("speculation",))]
NOW = datetime(2026, 3, 3, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours: speculation is recommended off after half an hour and switched off after one; then the cache's precision changes."""
    path = tmp_path_factory.mktemp("data")
    store = Store(path)
    rows: list[dict[str, object]] = []
    for block in range(27):
        is_on = block < 12
        for arm, n, tpot_s in (("treated", 90 * is_on, 0.031), ("control", 10 if is_on else 100, 0.027)):
            if n:
                rows += cell_rows(block, arm, n, {"tpot_s": tpot_s * (1.01 if block % 2 else 0.99), "ttft_s": 0.4, "e2e_s": 100 * tpot_s})
        rows += cell_rows(block, "", 100, {"tpot_s": 0.027}, "")
        serve(store, block, 30, {"kv_quantization": "fp8" if block < 20 else "bf16"}, {"kv_quantization": "treated"})
    put(store, rows)
    close(store, range(27))
    row = {"policy": "speculation-net-itl", "policy_version": "1", "lever": "speculation", "segment": SEGMENT, "verdict": "disable"}
    row |= {"action": "hold", "reason_code": "off_unseen", "reason": "", "decided_at": end(26), "block_ended_at": end(26), "state": "off"}
    with store.write() as transaction:
        transaction.insert("current_verdicts", pl.DataFrame([row | {"state_since": end(14), "streak": 0}]))
        effect = {"lever": "speculation", "segment": SEGMENT, "metric": "tpot_s", "arm_a": "treated", "since": START, "blocks": 9}
        effect |= {"until": end(11), "n_a": 9, "n_b": 9, "method": "t", "basis": "control", "coverage": 1.0}
        transaction.insert("effects", pl.DataFrame([effect]))
    flip(store, 5, "on", "off_recommended")
    flip(store, 14, "off_recommended", "off")
    assert follow_up.before_judging(store, POLICIES) > 0
    assert follow_up.after_judging(store, POLICIES) > 0
    store.close()
    return path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    opened = Store(folder)
    yield opened
    opened.close()


def ask(store: Store, path: str, **params: str) -> httpx.Response:
    app = FastAPI()
    app.include_router(api_around.router(store, lambda: NOW, POLICIES))

    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://leverwatch") as client:
            return await client.get(path, params=params)

    return asyncio.run(asked())


def test_nothing_new_is_written_twice(store: Store) -> None:
    assert follow_up.before_judging(store, POLICIES) == 0
    assert follow_up.after_judging(store, POLICIES) == 0


def test_a_changed_setting_is_followed_from_requests_to_what_is_to_be_judged_again(store: Store) -> None:
    [row] = ask(store, "/api/revalidations").json()
    assert (row["lever"], row["changed_from"], row["changed_to"], row["other_lever"]) == ("kv_quantization", "fp8", "bf16", "speculation")
    assert (row["changed_at"], row["scope"]["model"]) == ("2026-03-02T01:40:00Z", "m")
    assert ask(store, "/api/revalidations", lever="prefix_caching").json() == []
    refused = ask(store, "/api/revalidations", lever="speculative")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")


def test_a_switch_is_checked_and_told(store: Store) -> None:
    [row] = ask(store, "/api/after-checks").json()
    assert (row["segment"]["model"], row["helped"], row["switched_at"]) == ("m", True, "2026-03-02T01:00:00Z")


def test_a_budget_ledger_is_told_of_a_segment_as_of_a_moment(store: Store) -> None:
    [row] = ask(store, "/api/budgets", lever="speculation", segment=SEGMENT).json()
    assert row["policy"] == "speculation-net-itl"
    assert {one["metric"] for one in row["rows"]} == {"unexplained", "e2e_s", "ttft_s"}
    assert row["said"].startswith("of 2.7 s a request treated takes 400 ms more (+15 %)")
    assert ask(store, "/api/budgets", lever="speculation").json() == [row], "an empty segment is every one"
    for wrong in ({}, {"lever": "speculation", "segment": "[1]"}, {"lever": "speculation", "segment": "{"}):
        assert ask(store, "/api/budgets", **wrong).status_code == 400


def test_budgets_take_some_keys_of_a_segment_and_tell_the_known_ones_where_none_has_them(store: Store) -> None:
    [row] = ask(store, "/api/budgets", lever="speculation", segment='{"model":"m"}').json()
    assert row["segment"] == json.loads(SEGMENT)
    unknown = ask(store, "/api/budgets", lever="speculation", segment='{"model":"other"}')
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "segment_not_found")
    assert unknown.json()["error"]["message"] == 'no segment of speculation has {"model":"other"}'
    assert SEGMENT in unknown.json()["error"]["hint"]
    unseen = ask(store, "/api/budgets", lever="tensor_parallel", segment="{}")
    assert (unseen.status_code, unseen.json()["error"]["message"]) == (
        404,
        "tensor_parallel has no measured traffic in the two hours before that moment",
    )


def test_debt_is_told_alike_by_the_api_a_folder_and_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(folder)
    [row] = ask(store, "/api/debt").json()
    remote = Remote("http://leverwatch")
    remote.http = _Through(store)  # type: ignore[assignment]
    [through] = remote.debt(since="2026-03-02T00:00:00Z").to_dicts()
    assert remote.debt(until="2026-03-02T00:10:00Z").is_empty()
    assert remote.revalidations()["policy"].to_list() == ["speculation-net-itl"]
    store.close()
    assert (row["requests"], row["treated_s"], row["stood_s"]) == (6 * 90, 1800.0, 9 * 300.0)
    assert row["tokens"] is None, "they are not known here"
    with Local(EngineRoom(folder, Config())) as connection:
        [local] = connection.debt().to_dicts()
        assert len(connection.revalidations(everything=True)) == 1
    assert local["lost_s"] == pytest.approx(row["lost_s"]) == pytest.approx(through["lost_s"])
    assert json.loads(local["segment"]) == row["segment"] == json.loads(through["segment"])
    assert main(["debt", "--data", str(folder), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["requests"] == 540
    assert main(["debt", "--data", str(folder), "--until", "2026-03-02T00:10:00Z"]) == 0
    assert "no lever that was recommended off went on" in capsys.readouterr().err
    assert main(["debt", "--data", str(folder)]) == 0
    assert "speculation-net-itl" in capsys.readouterr().out


class _Through:
    """An HTTP client whose server is in this process."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def request(self, method: str, path: str, **what: Any) -> httpx.Response:
        assert method == "GET"
        return ask(self.store, path, **what["params"])


def test_the_state_began_with_the_block_in_which_treated_requests_were_gone(store: Store) -> None:
    rows = store.rows("select switched_at from after_checks")
    assert rows == [{"switched_at": START + 12 * BLOCK}]
