"""The phase that binds and what it waits for, with the numbers that say so."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline.bottleneck import INPUTS, bottleneck, with_bottleneck
from pipeline.metrics import by_name

DECODING = {"queue_share": 0.05, "prefill_share": 0.15, "decode_share": 0.8}
PREFILLING = {"queue_share": 0.1, "prefill_share": 0.7, "decode_share": 0.2}
WAITING = {"queue_share": 0.6, "prefill_share": 0.3, "decode_share": 0.1}


@pytest.mark.parametrize(
    ("values", "label"),
    [
        (DECODING, "decode:memory_bandwidth"),
        (DECODING | {"kv_usage": 0.95}, "decode:memory_capacity"),
        (DECODING | {"preemptions_per_1k_requests": 12.0}, "decode:memory_capacity"),
        (DECODING | {"batch_at_admission": 300.0}, "decode:compute"),
        (DECODING | {"communication_fraction": 0.6}, "decode:communication"),
        (PREFILLING, "prefill:compute"),
        (PREFILLING | {"kv_usage": 0.95}, "prefill:compute"),
        (PREFILLING | {"communication_fraction": 0.5}, "prefill:communication"),
        (DECODING | {"transfer_share": 0.9}, "transfer:communication"),
        (WAITING, "queue:compute"),
        (WAITING | {"prefill_share": 0.1, "decode_share": 0.3}, "queue:memory_bandwidth"),
        (WAITING | {"kv_usage": 0.97}, "queue:memory_capacity"),
    ],
)
def test_the_largest_phase_binds_and_load_says_what_it_waits_for(values: dict[str, float], label: str) -> None:
    assert bottleneck(values).label == label


def test_the_evidence_has_the_numbers() -> None:
    said = bottleneck(DECODING | {"kv_usage": 0.62, "batch_at_admission": 12.0}).evidence
    assert said.startswith("decode takes 80 % of the time (prefill 15 %, queue 5 %); each step reads all weights")
    assert said.endswith("(KV usage 0.62, batch 12)")


@pytest.mark.parametrize("missing", ["prefill_share", "decode_share"])
def test_without_the_shares_of_prefill_and_decode_it_is_unknown_and_says_which_lacks(missing: str) -> None:
    found = bottleneck(DECODING | {missing: None})
    assert (found.label, found.evidence) == ("unknown", f"not known without {missing}")


def test_every_input_is_a_metric() -> None:
    assert set(INPUTS) <= set(by_name())


def test_a_segment_without_requests_has_no_bottleneck() -> None:
    report = pl.DataFrame(
        {"requests": [0, 1], **{name: [None, 0.4] for name in DECODING}}, schema_overrides=dict.fromkeys(DECODING, pl.Float64)
    )
    assert with_bottleneck(report).select("bottleneck", "bottleneck_evidence").row(0) == (None, None)
