"""Which metrics effects carry, so that a policy may name them: what is compared with control, and what the treated arm has alone.

What nobody measures never holds: a condition on it would be accepted and never applied. A test holds these equal to what is compared.
"""

from __future__ import annotations

from pipeline.metrics import TAILS

WITH_EVIDENCE = ("net_itl_s", "tpot_s", "ttft_s", "e2e_s", "error_rate", *TAILS)
"""Arms are compared and evidence is kept: each of these that triggers name is one more way to be wrong by chance."""
WITH_INTERVALS = ("queue_s", "gpu_s_per_output_token", "quality")
"""Arms are compared by an interval, quality by its noise."""
ALONE = (
    "draft_acceptance",
    "acceptance_length",
    "skipped_token_ratio",
    "cache_hit_rate",
    "interconnect_efficiency",
    "batch_at_admission",
    "skipped_of_attainable",
    "attainable_skip_ceiling",
    "conditional_acceptance_at_1",
    "conditional_acceptance_at_2",
    "kv_usage",
    "preemptions_per_1k_requests",
    "gpu_memory_headroom",
    "communication_fraction",
    "collective_efficiency",
    "kv_transfer_exposed_share",
    "queue_share",
    "transfer_share",
    "prefill_share",
    "concurrency",
    "transfer_to_prefill_ratio",
    "handover_to_prefill_ratio",
    "affinity_load_spread",
)
"""The treated arm's own value."""
COMPARED = (*WITH_EVIDENCE, *WITH_INTERVALS)
CARRIED = (*COMPARED, *ALONE)
