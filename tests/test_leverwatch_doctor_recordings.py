"""What `leverwatch doctor` says of what real engines and clients sent: which core metrics there are, and what keeps the others away."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import RECORDINGS

from leverwatch.cli.main import main
from leverwatch.connecting import connect
from leverwatch.doctor_text import text
from leverwatch.findings import CORE, METRICS
from queries.metric_sql import known

NAMES = sorted(path.parent.name for path in RECORDINGS.glob("*/meta.json"))
Told = dict[str, Any]
Diagnosed = Callable[[str], tuple[int, Told]]
# Dialect -> per core metric, in the order of CORE: `+` can be computed, `-` cannot, `.` does not apply. Then the exit status.
EXPECTED: dict[str, tuple[dict[str, str], int]] = {
    "client-official": ({"genai": "--.-."}, 1),
    "client-openinference": ({"openinference": "++.+."}, 0),
    "client-vllm": ({"vllm": "--.+."}, 1),
    "dynamo-agg": ({"dynamo": "--.+."}, 1),
    "dynamo-disagg": ({"dynamo": "--.+-"}, 1),
    "dynamo-reqtrace": ({"dynamo": "++.+."}, 0),
    "sglang-isolated": ({"sglang": "++.+-"}, 1),
    "transformers-cb": ({}, 3),
    "vllm": ({"vllm": "--.+."}, 1),
    "vllm-failed-start": ({}, 3),
    "vllm-spec": ({"vllm": "--.+."}, 1),
}
SIGNS = {"computed": "+", "missing": "-", "not_applicable": "."}


def said(*words: str) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        status = main(list(words))
    return status, out.getvalue()


@pytest.fixture(scope="module")
def folders(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The data folder of one recording, loaded once for all tests."""
    made: dict[str, Path] = {}

    def folder_of(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            assert said("load", str(recordings / name), "--data", str(made[name]))[0] == 0
        return made[name]

    return folder_of


@pytest.fixture(scope="module")
def diagnosed(folders: Callable[[str], Path]) -> Iterator[Diagnosed]:
    """Exit status and JSON of the command over one recording."""
    found: dict[str, tuple[int, Told]] = {}

    def told_of(name: str) -> tuple[int, Told]:
        if name not in found:
            status, out = said("doctor", "--format", "json", "--data", str(folders(name)))
            found[name] = status, json.loads(out)
        return found[name]

    yield told_of


def serving(told: Told) -> list[Told]:
    return [one for one in told["replicas"] if one["stands"] == "requests"]


def column(one: Told, name: str) -> Told:
    return next(each for each in one["columns"] if each["column"] == name)


@pytest.mark.parametrize("name", NAMES)
def test_each_recording_has_the_core_metrics_that_its_signals_allow(diagnosed: Diagnosed, name: str) -> None:
    status, told = diagnosed(name)
    found = {one["dialect"]: "".join(SIGNS[core["state"]] for core in one["core"]) for one in serving(told)}
    assert (found, status) == EXPECTED[name]
    assert told["status"] == status


@pytest.mark.parametrize("name", NAMES)
def test_every_request_is_counted_once_and_each_metrics_share_is_that_of_the_table(
    diagnosed: Diagnosed, folders: Callable[[str], Path], name: str
) -> None:
    told = diagnosed(name)[1]
    with connect(folders(name)) as connection:
        items = ", ".join(f"count(*) filter (where {known(metric)}) as {metric.name}" for metric in METRICS)
        whole = connection.sql(f"select count(*) as requests, {items} from requests").to_dicts()[0]
    assert told["requests"] == whole["requests"] == sum(one["requests"] for one in serving(told))
    for place, metric in enumerate(CORE):
        share = sum(one["core"][place]["coverage"] * one["requests"] for one in serving(told))
        assert share == pytest.approx(whole[metric])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_missing_without_a_word_on_what_brings_it(diagnosed: Diagnosed, name: str) -> None:
    for one in serving(diagnosed(name)[1]):
        assert [each["column"] for each in one["columns"] if each["state"] != "complete" and len(each["why"]) < 12] == []
        assert [core["metric"] for core in one["core"] if core["state"] != "computed" and not core["why"]] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_plain_text_of_120_columns_and_names_each_replica(diagnosed: Diagnosed, name: str) -> None:
    told = diagnosed(name)[1]
    shown = text(told)
    assert shown.isascii()
    assert max(map(len, shown.splitlines())) <= 120
    assert all((one["replica"] or "(no replica named)") in shown for one in told["replicas"])


@pytest.mark.parametrize("name", NAMES)
def test_the_ledger_of_a_recording_adds_up(diagnosed: Diagnosed, name: str) -> None:
    ledger = diagnosed(name)[1]["ledger"]
    assert ledger
    for row in ledger:
        assert row["received"] == sum(row[outcome] for outcome in ("stored", "duplicate", "rejected", "dropped", "pending"))


@pytest.mark.parametrize("name", ["vllm", "client-vllm"])
def test_vllms_cached_tokens_need_its_flag_and_the_tap(diagnosed: Diagnosed, name: str) -> None:
    one = serving(diagnosed(name)[1])[0]
    cached = column(one, "cached_tokens")
    assert cached["state"] == "missing"
    assert "--enable-prompt-tokens-details" in cached["why"]
    assert "`leverwatch tap`" in cached["why"]
    assert one["core"][0]["why"] == f"cached_tokens: {cached['why']}"


def test_dynamos_request_trace_brings_cached_tokens_and_without_it_the_variable_is_named(diagnosed: Diagnosed) -> None:
    assert {column(one, "cached_tokens")["state"] for one in serving(diagnosed("dynamo-reqtrace")[1])} == {"complete"}
    assert "DYN_REQUEST_TRACE=1" in column(serving(diagnosed("dynamo-agg")[1])[0], "cached_tokens")["why"]


def test_a_pair_of_prefill_and_decode_makes_interconnect_efficiency_asked_for(diagnosed: Diagnosed) -> None:
    lacks = serving(diagnosed("dynamo-disagg")[1])[0]["core"][4]["lacks"]
    assert lacks == ["kv_transfer_bytes", "kv_transfer_s", "link_peak_bytes_per_s"]
    assert serving(diagnosed("dynamo-agg")[1])[0]["core"][4]["why"] == "no KV transfer seen"


def test_scopes_of_a_foreign_tracer_are_counted_by_name(diagnosed: Diagnosed) -> None:
    unknown = diagnosed("transformers-cb")[1]["unknown"]
    assert sum(row["spans"] for row in unknown) == 3372
    assert {row["scope"].partition(".")[0] for row in unknown[:-1]} == {"transformers"}


def test_a_client_beside_an_engine_is_shown_as_a_part_and_not_judged(diagnosed: Diagnosed) -> None:
    parts = [one for one in diagnosed("client-vllm")[1]["replicas"] if one["stands"] == "parts"]
    assert [(one["dialect"], one["roles"], one["core"]) for one in parts] == [("openllmetry", ["client"], [])]
