"""What a metric's name means: the canonical signal, its unit, which series count, and which name wins where there are two."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from collectors import meanings
from collectors.meanings import SAMPLE_SIGNALS, UNITS, MeaningError
from collectors.prometheus_text import Scrape, samples
from collectors.samples import Arrived, Sample

FOLDER = Path(meanings.__file__).parent / "engines" / "metrics"
NOW = 1_700_000_000_000_000_000


def meant(text: str) -> list[Arrived]:
    kept = samples(Scrape("h:1"), text.encode(), NOW, ())
    return meanings.shipped().given([one for one in kept if isinstance(one, Sample)])


def sums(text: str) -> dict[str, float]:
    """The canonical value of each signal, added up over its series."""
    found: dict[str, float] = defaultdict(float)
    for one in meant(text):
        if one.signal:
            assert one.sample.value is not None
            found[one.signal] += one.sample.value * one.factor
    return dict(found)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_table_is_sound_and_says_each_signal_once_or_why_not(path: Path) -> None:
    table = meanings.load(path.name, path.read_bytes())
    assert table.signals
    assert not table.signals.keys() & table.cannot.keys()
    for sources in table.signals.values():
        names = [source.name for source in sources]
        assert len(set(names)) == len(names)


def test_every_signal_has_a_unit_that_there_is() -> None:
    assert {unit for _, unit in SAMPLE_SIGNALS.values()} <= UNITS.keys()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('engine = "x"\n[signals]\nkv_usag = [{ name = "n", unit = "ratio" }]', "signal 'kv_usag' is unknown; did you mean 'kv_usage'"),
        ('engine = "x"\n[signals]\nkv_usage = [{ name = "n", unit = "ms" }]', "signal 'kv_usage': unit 'ms' of 'n'; taken: ratio, percent"),
        ('engine = "x"\n[signals]\nkv_usage = [{ name = "n" }]', "missing required field `unit`"),
        ('engine = "x"\nsignals = {}\nother = 1', "unknown field `other`"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_its_name(text: str, told: str) -> None:
    with pytest.raises(MeaningError, match=r"engines/metrics/x\.toml: ") as caught:
        meanings.load("x.toml", text.encode())
    assert told in str(caught.value)


def test_the_recorded_counters_of_vllm_are_what_its_note_says(recordings: Path) -> None:
    found = sums((recordings / "vllm-spec" / "metrics-18200.prom").read_text())
    wanted = {"verify_steps_total": 94, "draft_tokens_total": 279, "accepted_tokens_total": 18, "output_tokens_total": 504}
    assert {name: found[name] for name in wanted} == wanted
    assert (found["prompt_tokens_total"], found["cached_tokens_total"], found["kv_usage"]) == (9580, 5376, 0)


def test_the_recorded_frontend_of_dynamo_says_tokens_and_times(recordings: Path) -> None:
    found = sums((recordings / "dynamo-agg" / "metrics-18000.prom").read_text())
    wanted = {"prompt_tokens": 9580, "output_tokens": 588, "output_tokens_total": 588, "cached_tokens": 4896, "requests_total": 24}
    assert {name: found[name] for name in wanted} == wanted


def test_vllm_counters_of_each_engine_add_up_and_steps_are_no_tokens() -> None:
    text = "# TYPE vllm:generation_tokens_total counter\n" + "".join(f'vllm:generation_tokens_total{{engine="{n}"}} {n}\n' for n in (1, 2))
    text += '# TYPE vllm:inter_token_latency_seconds histogram\nvllm:inter_token_latency_seconds_bucket{le="+Inf"} 1\n'
    text += "vllm:inter_token_latency_seconds_sum 0.5\nvllm:inter_token_latency_seconds_count 1\n"
    assert sums(text) == {"output_tokens_total": 3, "step_s": 0.5}


def test_an_older_name_counts_only_without_the_newer_one() -> None:
    older = "# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc 0.25\n"
    assert sums(older) == {"kv_usage": 0.25}
    assert sums(older + "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc 0.25\n") == {"kv_usage": 0.25}


def test_the_number_of_an_info_metric_is_in_its_label() -> None:
    text = "# TYPE vllm:cache_config_info gauge\n"
    for engine, size in (("0", "32"), ("1", "None")):
        text += f'vllm:cache_config_info{{block_size="{size}",engine="{engine}"}} 1\n'
    assert sums(text) == {"kv_block_tokens": 32}


def test_sglang_counts_rank_zero_and_never_the_total_beside_its_parts() -> None:
    text = "# TYPE sglang:cached_tokens_total counter\n"
    for source, value in (("device", 10), ("host", 5), ("total", 15)):
        text += "".join(f'sglang:cached_tokens_total{{cache_source="{source}",tp_rank="{rank}",pp_rank="0"}} {value}\n' for rank in (0, 1))
    text += '# TYPE sglang:token_usage gauge\nsglang:token_usage{tp_rank="0"} 0.5\nsglang:token_usage{tp_rank="1"} 0.5\n'
    assert sums(text) == {"cached_tokens_total": 15, "kv_usage": 0.5}


@pytest.mark.parametrize(
    ("name", "signal", "value"),
    [
        ("sglang:kv_transfer_latency_ms", "kv_transfer_s", 0.002),
        ("sglang:kv_transfer_total_mb", "kv_transfer_bytes", 2 * 1048576),
        ("sglang:kv_transfer_speed_gb_s", "kv_transfer_bytes_per_s", 2 * 1073741824),
        ("lmdeploy:iter_token_latency", "step_s", 2),
        ("trtllm_time_per_output_token_seconds", "tpot_s", 2),
        ("trtllm:time_to_first_token_seconds", "ttft_s", 2),
        ("llm_d_epp_request_cached_tokens", "cached_tokens", 2),
    ],
)
def test_histograms_are_brought_to_the_canonical_unit(name: str, signal: str, value: float) -> None:
    text = f'# TYPE {name} histogram\n{name}_bucket{{le="1"}} 1\n{name}_bucket{{le="+Inf"}} 1\n{name}_sum 2\n{name}_count 1\n'
    assert sums(text) == {signal: pytest.approx(value)}


def test_llm_d_names_of_both_generations_are_counted_once() -> None:
    text = ""
    for name in ("llm_d_epp_request_input_tokens", "inference_objective_input_tokens"):
        text += f'# TYPE {name} histogram\n{name}_bucket{{le="+Inf"}} 1\n{name}_sum 100\n{name}_count 1\n'
    assert sums(text) == {"prompt_tokens": 100}


def test_trtllm_and_lmdeploy_gauges_and_counters() -> None:
    text = "# TYPE trtllm_kv_cache_utilization gauge\ntrtllm_kv_cache_utilization 0.5\n"
    text += "# TYPE trtllm_spec_decode_num_draft_tokens_total counter\ntrtllm_spec_decode_num_draft_tokens_total 8\n"
    text += "# TYPE lmdeploy:num_requests_waiting gauge\nlmdeploy:num_requests_waiting 3\n"
    assert sums(text) == {"kv_usage": 0.5, "draft_tokens_total": 8, "queue_depth": 3}


def test_dcgm_is_in_percent_and_mebibytes_and_its_link_bytes_are_a_rate() -> None:
    text = ""
    for name, value in (("GPU_UTIL", 50), ("FB_USED", 2), ("FB_FREE", 6)):
        text += f'# TYPE DCGM_FI_DEV_{name} gauge\nDCGM_FI_DEV_{name}{{gpu="0",UUID="GPU-1",Hostname="node-1"}} {value}\n'
    for way in ("TX", "RX"):
        text += f'# TYPE DCGM_FI_PROF_NVLINK_{way}_BYTES gauge\nDCGM_FI_PROF_NVLINK_{way}_BYTES{{gpu="0"}} 4e9\n'
    assert sums(text) == {
        "gpu_utilization": 0.5, "gpu_memory_used_bytes": 2 * 1048576, "gpu_memory_free_bytes": 6 * 1048576,
        "link_tx_bytes_per_s": 4e9, "link_rx_bytes_per_s": 4e9,
    }  # fmt: skip


def test_names_without_their_prefix_are_read_where_a_label_says_whose_they_are() -> None:
    text = "# TYPE kv_cache_utilization gauge\nkv_cache_utilization 0.5\n"
    for labels, signal in (({}, None), ({"leverwatch.dialect": "trtllm"}, "kv_usage"), ({"leverwatch.dialect": "other"}, None)):
        kept = [one for one in samples(Scrape("h:1", labels=labels), text.encode(), NOW, ()) if isinstance(one, Sample)]
        assert [one.signal for one in meanings.shipped().given(kept)] == [signal]


def test_a_name_sent_as_another_kind_means_nothing() -> None:
    assert sums("# TYPE vllm:kv_cache_usage_perc counter\nvllm:kv_cache_usage_perc 1\n") == {}
