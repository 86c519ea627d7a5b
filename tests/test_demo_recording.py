"""A recorded scenario: files that load, and say of every request what its fleet sends with a tap in front of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from demo_played import BEGAN, loaded
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from demo import scenarios
from demo.play import Plan
from demo.recording import record
from leverwatch.cli.load import _files
from leverwatch.loading import Here, put_files
from leverwatch.local import Local

HOURS = 0.25
TOLD = """
    select trace_id, engine, replica, prefill_replica, outcome, prompt_tokens, cached_tokens, output_tokens, draft_tokens, accepted_tokens,
        round(ttft_s, 5) as ttft_s, round(decode_s, 5) as decode_s, batch_at_admission
    from requests order by trace_id
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "new"
    said = list[str]()
    plan = Plan(replace(scenarios.load("batch-grows"), hours=HOURS), HOURS, BEGAN + timedelta(hours=HOURS), seed=1)
    played = record(plan, folder, said.append)
    assert said == [f"batch-grows: {played}, written to {folder}"]
    return folder


def test_a_recording_loads_and_says_what_the_fleet_sends_with_taps(folder: Path, tmp_path: Path) -> None:
    with Local.open(tmp_path / "recorded") as connection:
        way = Here(connection, "load:x")
        recorded = [path for path in _files([str(folder)]) if path.suffix != ".prom"]
        assert list(put_files(way, recorded)) == []
        way.ledger()
        of_files = connection.sql(TOLD)
    with loaded(replace(scenarios.load("batch-grows"), hours=HOURS), tmp_path / "played") as (connection, fleet):
        of_taps = connection.sql(TOLD)
    assert len(of_files) == fleet.requests
    assert of_files.equals(of_taps)
    assert {"vllm", "sglang"} == set(of_files["engine"])


def test_each_replica_s_last_page_is_there(folder: Path) -> None:
    pages = sorted(path.name for path in folder.glob("*.prom"))
    assert len(pages) == 14
    families = {family.name for family in text_string_to_metric_families((folder / "metrics-chat-long-1.prom").read_text(encoding="utf-8"))}
    assert {"vllm:num_requests_running", "vllm:spec_decode_num_drafts", "vllm:time_to_first_token_seconds"} <= families


def test_a_folder_that_holds_something_is_not_written_to(folder: Path) -> None:
    plan = Plan(replace(scenarios.load("batch-grows"), hours=HOURS), HOURS, BEGAN, seed=1)
    with pytest.raises(FileExistsError, match="not empty; a new or an empty folder is taken"):
        record(plan, folder, lambda _: None)
