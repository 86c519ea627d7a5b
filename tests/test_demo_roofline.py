"""What an iteration costs, held to what theory says of memory, arithmetic, speculation, parallelism and quantization."""

from __future__ import annotations

from typing import Any

import pytest

from demo.replicas.drafting import tokens_per_step
from demo.replicas.hardware import COMPUTE_EFFICIENCY, HARDWARE, MEMORY_EFFICIENCY, NETWORKS
from demo.replicas.roofline import DoesNotFitError, Roofline, Work
from demo.replicas.serving import Serving, Speculation

H100 = HARDWARE["h100"]


def roofline(network: str = "dense-8b", hardware: str = "h100", imbalance: float = 1.0, slowed: float = 1.0, **serving: Any) -> Roofline:
    said = Serving(**({"step_overhead_s": 0.0} | serving))
    return Roofline(NETWORKS[network], HARDWARE[hardware], said, imbalance=imbalance, slowed=slowed)


def step_s(costs: Roofline, batch: int, context: int = 1000) -> float:
    return costs.iteration_s(Work(batch, batch, batch * context))


def test_a_lone_step_reads_the_weights_once_and_computes_one_token() -> None:
    read_s = NETWORKS["dense-8b"].parameters * 2 / (H100.memory_bytes_per_s * MEMORY_EFFICIENCY)
    computed_s = 2 * NETWORKS["dense-8b"].active / (H100.flops_per_s * COMPUTE_EFFICIENCY)
    assert step_s(roofline(), 1, context=0) == pytest.approx(read_s + computed_s)


def test_a_prompt_costs_its_tokens_and_the_pairs_of_them() -> None:
    costs = roofline()
    short, long = (costs.iteration_s(Work(0, 0, 0, tokens, tokens / 2)) for tokens in (1000, 8000))
    weights_s = 16e9 / (H100.memory_bytes_per_s * MEMORY_EFFICIENCY)
    assert long - 8 * short == pytest.approx(costs.pair_s * (8000**2 - 8 * 1000**2) / 2 - 7 * weights_s)


def test_tokens_a_second_grow_with_the_batch_and_their_price_never_falls_below_arithmetic_and_their_own_context() -> None:
    costs = roofline()
    rates = [batch / step_s(costs, batch) for batch in (1, 4, 16, 64, 256, 1024, 1 << 20)]
    assert rates == sorted(rates)
    assert rates[1] / rates[0] > 3.8
    assert rates[-1] == pytest.approx(1 / (costs.token_s + 1000 * costs.context_s), rel=0.001)


@pytest.mark.parametrize(
    ("serving", "resource"),
    [({"weight_bits": 8}, "weights"), ({"weight_bits": 4}, "weights"), ({"kv_bits": 8}, "context"), ({"activation_bits": 8}, "arithmetic")],
)
def test_fewer_bits_spare_what_they_are_bits_of(serving: dict[str, int], resource: str) -> None:
    """Long contexts are bound by their keys and values, low batches by weights, prompts by arithmetic."""
    works = {"weights": Work(1, 1, 0), "context": Work(64, 64, 64 * 30_000), "arithmetic": Work(0, 0, 0, 4096, 2048)}
    plain, quantized = roofline(), roofline(**serving)
    spared = {name: 1 - quantized.iteration_s(work) / plain.iteration_s(work) for name, work in works.items()}
    assert max(spared, key=lambda name: spared[name]) == resource
    assert spared[resource] > 0.4


def test_fewer_bits_leave_more_room_for_keys_and_values() -> None:
    plain = roofline().kv_tokens
    assert plain == int((80e9 * 0.9 - 16e9) / 131_072)
    assert roofline(kv_bits=8).kv_tokens == pytest.approx(2 * plain, abs=2)
    assert roofline(weight_bits=4).kv_tokens == int((80e9 * 0.9 - 4e9) / 131_072)


def test_a_model_that_does_not_fit_is_refused_with_what_it_takes() -> None:
    with pytest.raises(DoesNotFitError, match="the weights take 140 GB, and 1 of the accelerators have 72 GB for them"):
        roofline("dense-70b")
    assert roofline("dense-70b", tensor_parallel=2).kv_tokens > 0
    assert roofline("dense-70b", pipeline_parallel=2).kv_tokens > 0
    assert roofline("dense-70b", weight_bits=4).kv_tokens > 0


# Speculation: a step of b sequences with k drafts each lasts m + b (k + 1) t + d against m + b t, and gives e tokens in place of one. It
# pays while m (e - 1) - d > b t (k + 1 - e).
def break_even(costs: Roofline, speculation: Speculation, context: int = 0) -> float:
    gained = tokens_per_step(speculation)
    weights_s = step_s(costs, 1, context=0) - costs.token_s
    drafted = speculation.draft_tokens + 1
    per_sequence_s = costs.token_s * (drafted - gained) - context * costs.context_s * (gained - 1)
    return (weights_s * (gained - 1) - costs.draft_s(1)) / per_sequence_s


def pays(costs: Roofline, speculation: Speculation, batch: float) -> bool:
    drafted = Work(1, batch * (speculation.draft_tokens + 1), 0, draft_s=costs.draft_s(1))
    return costs.iteration_s(drafted) / tokens_per_step(speculation) < costs.iteration_s(Work(1, batch, 0))


@pytest.mark.parametrize("hardware", ["h100", "a100", "l40s"])
@pytest.mark.parametrize(("draft_tokens", "acceptance"), [(1, 0.7), (3, 0.7), (3, 0.5), (7, 0.8)])
def test_speculation_pays_up_to_the_break_even_batch_and_no_further(hardware: str, draft_tokens: int, acceptance: float) -> None:
    speculation = Speculation(draft_tokens=draft_tokens, acceptance=(acceptance,), draft_step_s=1e-4)
    costs = roofline("dense-13b", hardware, speculation=speculation)
    batch = break_even(costs, speculation)
    assert batch > 1
    assert pays(costs, speculation, batch * 0.99)
    assert not pays(costs, speculation, batch * 1.01)


def test_the_break_even_batch_moves_with_acceptance_draft_length_and_the_hardware_as_theory_says() -> None:
    def at(draft_tokens: int, acceptance: float, hardware: str = "h100", **serving: Any) -> float:
        speculation = Speculation(draft_tokens=draft_tokens, acceptance=(acceptance,))
        return break_even(roofline("dense-13b", hardware, speculation=speculation, **serving), speculation)

    assert at(3, 0.5) < at(3, 0.7) < at(3, 0.9)
    assert at(7, 0.7) < at(3, 0.7) < at(1, 0.7)
    assert at(3, 0.7, weight_bits=4) < at(3, 0.7)  # less is read, less is spared
    assert at(3, 0.7, "a100") < at(3, 0.7)  # 153 operations a byte against 295
    ratio = {name: HARDWARE[name].flops_per_s / HARDWARE[name].memory_bytes_per_s for name in ("h100", "a100", "l40s")}
    assert at(3, 0.7, "l40s") / at(3, 0.7) == pytest.approx(ratio["l40s"] / ratio["h100"], rel=0.02)


def test_drafting_costs_as_often_as_any_sequence_drafts() -> None:
    speculation = Speculation(draft_tokens=4, acceptance=(0.7,), coverage=0.3, overhead_s=1e-3, draft_step_s=1e-4)
    costs = roofline(speculation=speculation)
    assert costs.draft_s(1) == pytest.approx(0.3 * 1.4e-3)
    assert costs.draft_s(100) == pytest.approx(1.4e-3)
    assert roofline().draft_s(5) == 0


def test_tensor_parallelism_scales_until_its_talk_exceeds_the_work_it_spares() -> None:
    fast = {degree: step_s(roofline("dense-34b", tensor_parallel=degree), 8) for degree in (1, 2, 4, 8)}
    assert fast[8] < fast[4] < fast[2] < fast[1]
    efficiency = [fast[1] / degree / fast[degree] for degree in (2, 4, 8)]
    assert efficiency == sorted(efficiency, reverse=True)
    across = step_s(roofline("dense-34b", tensor_parallel=16), 8)
    assert across > fast[8]  # over the network between nodes
    congested = {degree: step_s(roofline("dense-8b", "l40s", slowed=0.05, tensor_parallel=degree), 64) for degree in (1, 2, 4, 8)}
    best = min(congested, key=lambda degree: congested[degree])
    assert best < 8
    assert congested[8] > congested[best]


def test_the_talk_of_tensor_parallelism_matters_less_where_links_are_fast() -> None:
    gain = {name: step_s(roofline(hardware=name), 16) / step_s(roofline(hardware=name, tensor_parallel=4), 16) for name in ("h100", "l40s")}
    per_memory = {name: HARDWARE[name].memory_bytes_per_s / HARDWARE[name].node_bytes_per_s for name in gain}
    assert per_memory["h100"] < per_memory["l40s"]
    assert roofline(hardware="h100", tensor_parallel=4).talk.seconds(4096) < roofline(hardware="l40s", tensor_parallel=4).talk.seconds(4096)


def test_the_busiest_rank_of_experts_sets_the_pace() -> None:
    even, uneven = (roofline("moe-106b", expert_parallel=8, imbalance=imbalance) for imbalance in (1.0, 2.0))
    prompt = Work(0, 0, 0, 8192, 4096)
    assert even.iteration_s(prompt) < uneven.iteration_s(prompt) < 2 * even.iteration_s(prompt)
    assert step_s(even, 64) < step_s(uneven, 64) < 2 * step_s(even, 64)
    for imbalance in (1.0, 2.0):
        assert step_s(roofline("moe-106b", tensor_parallel=8, imbalance=imbalance), 64) == step_s(
            roofline("moe-106b", tensor_parallel=8), 64
        )


def test_experts_are_read_as_far_as_tokens_meet_them() -> None:
    costs = roofline("moe-106b", expert_parallel=8, step_overhead_s=0.0)
    lone, some, many = (costs.iteration_s(Work(batch, batch, 0)) for batch in (1, 16, 256))
    assert lone < 0.5 * some < 0.7 * many
    assert many - costs.talk.seconds(256) < 1.2 * (costs.iteration_s(Work(512, 512, 0)) - costs.talk.seconds(512))


def test_stages_of_a_pipeline_stand_idle_at_a_low_batch_and_fill_up_with_it() -> None:
    one, four = roofline("dense-34b"), roofline("dense-34b", pipeline_parallel=4)
    assert step_s(four, 1) == pytest.approx(step_s(one, 1) + four.talk.seconds(1))
    efficiency = [step_s(one, batch, 4000) / step_s(four, batch, 4000) / 4 for batch in (1, 4, 64, 512)]
    assert efficiency == sorted(efficiency)
    assert 0.2 < efficiency[0] < 0.26
    assert efficiency[-1] > 0.65


def test_a_pipeline_has_the_memory_of_all_its_stages() -> None:
    assert roofline("dense-34b", pipeline_parallel=4).kv_tokens > 4 * roofline("dense-34b").kv_tokens
