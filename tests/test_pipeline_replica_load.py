"""What requests met where they ran: whole rows of the store in and out, and the counters of a real engine beside its spans."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from collectors_bodies import attribute, body, span
from pipeline_load_rows import NOBODY, NONE, request, requests, series

from collectors.prometheus_text import Scrape, spooled
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline import replica_load
from pipeline.segments import Edges
from queries import files

ROWS = (
    "select * replace (map_entries(provenance) as provenance, map_entries(levers) as levers, map_entries(arms) as arms) "
    "from requests order by started_at"
)
TRUTH = {"cached_tokens": 5376, "draft_tokens": 279, "accepted_tokens": 18, "verify_steps": 94}


def scraped(room: EngineRoom, text: str, moment: datetime, replica: str) -> None:
    body = spooled(Scrape("h:1", replica=replica), text.encode())
    room.spool.append("scrapes", "scrape:h:1/metrics", round(moment.timestamp() * 1e9), body).result()
    room.drain()


def at_its_start(text: str) -> str:
    """The text of an engine's metrics as it was before the first request: counters at nothing."""
    return re.sub(r"(?m)^(vllm:\w+_total\{.*\}) .*$", r"\1 0.0", text)


@pytest.fixture(scope="module")
def room(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> EngineRoom:
    """A recorded engine with speculation: its spans, and its metrics before and after."""
    folder = recordings / "vllm-spec"
    made = EngineRoom(tmp_path_factory.mktemp("load"), Config())
    for path in sorted((folder / "traces").glob("*.pb")):
        made.spool.append("traces", "vllm", 1, path.read_bytes()).result()
    made.drain()
    first, last, replica = made.store.frame("select min(started_at), max(ended_at), any_value(replica) from requests").row(0)
    text = next(folder.glob("metrics-*.prom")).read_text()
    scraped(made, at_its_start(text), first - timedelta(seconds=1), replica)
    scraped(made, text, last + timedelta(seconds=1), replica)
    return made


def filled(room: EngineRoom) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(the requests as they are stored, as they are filled)."""
    rows = room.store.frame(ROWS)
    span = {"since": rows["started_at"].min() - timedelta(minutes=5), "until": rows["ended_at"].max() + timedelta(minutes=1)}  # type: ignore[operator]
    samples = room.store.frame(files.question("settle_samples"), span)
    return rows, replica_load.joined(rows, rows.clear(), samples, Edges())


def test_shares_of_a_real_engines_counters_add_up_to_what_it_counted(room: EngineRoom) -> None:
    _, found = filled(room)
    for column, counted in TRUTH.items():
        assert found[column].sum() == pytest.approx(counted, abs=1)
        assert found[column].null_count() == 0
    assert found.select(pl.sum("accepted_tokens") / pl.sum("draft_tokens")).item() == pytest.approx(18 / 279, abs=0.004)
    assert (found["kv_block_tokens"] == 32).all()


def test_rows_keep_their_columns_types_and_what_they_said(room: EngineRoom) -> None:
    rows, found = filled(room)
    assert found.schema == rows.schema
    own = [column for column in rows.columns if column not in (*replica_load.SOURCES, "provenance", "batch_bucket", "concurrency_bucket")]
    assert found.select(own).drop("cache_class").equals(rows.select(own).drop("cache_class"))
    for before, after in zip(rows["provenance"].to_list(), found["provenance"].to_list(), strict=True):
        assert after[: len(before)] == before


def test_provenance_names_exactly_what_was_filled(room: EngineRoom) -> None:
    rows, found = filled(room)
    for before, after in zip(rows.to_dicts(), found.to_dicts(), strict=True):
        new = {pair["key"]: pair["value"] for pair in after["provenance"][len(before["provenance"]) :]}
        assert new == {name: source for name, source in replica_load.SOURCES.items() if before[name] is None and after[name] is not None}


def test_without_samples_and_replicas_everything_stays_unknown() -> None:
    made = requests(request(0, 1, None), request(0, 1, None))
    assert replica_load.joined(made, NOBODY, NONE, Edges()).equals(made.with_columns(provenance=pl.lit([], made.schema["provenance"])))
    assert replica_load.joined(made.clear(), NOBODY, NONE, Edges()).is_empty()


def test_order_of_samples_and_of_requests_decides_nothing() -> None:
    made = requests(*(request(n, n + 5, output_tokens=11, prompt_tokens=50, gpus=1) for n in range(20)))
    samples = pl.concat(
        [series(f"{name}_tokens_total", [(t, t * 7.0) for t in range(0, 60, 10)]) for name in ("draft", "output", "cached", "prompt")]
    )
    expected = replica_load.joined(made, NOBODY, samples, Edges())
    shuffled = replica_load.joined(made.head(1).vstack(made.tail(19).reverse()), NOBODY, samples.reverse(), Edges())
    assert shuffled.sort("started_at").equals(expected)


@pytest.mark.parametrize("on", ["span", "resource"])
def test_the_size_of_a_cache_block_is_a_fact_of_the_deployment(tmp_path: Path, on: str) -> None:
    told = {"leverwatch.kv_block_tokens": "16"}
    attributes = [attribute(key, value) for key, value in told.items()] if on == "span" else []
    made = EngineRoom(tmp_path, Config())
    made.spool.append("traces", "s", 1, body(span(1, attributes=attributes), **(told if on == "resource" else {}))).result()
    made.drain()
    assert made.store.rows("select kv_block_tokens, provenance['kv_block_tokens'] as source from requests") == [
        {"kv_block_tokens": 16, "source": "span"}
    ]
    made.close()
