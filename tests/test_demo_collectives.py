"""What ranks say to each other in an iteration, held to the formulas of NCCL's bus bandwidth."""

from __future__ import annotations

from typing import Any

import pytest

from demo.replicas.collectives import Collectives, collectives
from demo.replicas.hardware import HARDWARE, NETWORKS
from demo.replicas.serving import Serving

H100, L40S = HARDWARE["h100"], HARDWARE["l40s"]


def talk(network: str = "dense-70b", slowed: float = 1.0, **serving: Any) -> Collectives:
    return collectives(NETWORKS[network], H100, Serving(**serving), slowed)


def test_one_rank_says_nothing() -> None:
    assert talk("dense-8b") == Collectives(0.0, 0.0, 0.0)
    assert talk("dense-8b").seconds(1000) == 0


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_two_all_reduces_a_layer_move_twice_what_is_not_their_own(ranks: int) -> None:
    network, said = NETWORKS["dense-70b"], talk(tensor_parallel=ranks)
    assert said.token_bytes == pytest.approx(2 * network.layers * 2 * (ranks - 1) / ranks * network.hidden * 2)
    assert said.token_s == pytest.approx(said.token_bytes / H100.node_bytes_per_s)
    assert said.fixed_s >= 2 * network.layers * H100.node_latency_s


def test_beyond_a_node_the_network_carries_it() -> None:
    near, far = talk(tensor_parallel=8), talk(tensor_parallel=16)
    assert far.token_s / near.token_s == pytest.approx(H100.node_bytes_per_s / H100.network_bytes_per_s * (15 / 16) / (7 / 8))
    assert far.fixed_s > near.fixed_s


def test_experts_apart_take_the_place_of_all_reduces_and_send_each_token_to_its_experts_and_back() -> None:
    network, said = NETWORKS["moe-106b"], talk("moe-106b", expert_parallel=8)
    assert said.token_bytes == pytest.approx(2 * network.layers * network.experts_per_token * network.hidden * 2 * 7 / 8 / 8)
    assert talk("moe-106b", expert_parallel=8, tensor_parallel=8) == said


def test_a_pipeline_passes_each_token_on_once_a_stage() -> None:
    said = talk(pipeline_parallel=4)
    assert said.token_bytes == 3 * NETWORKS["dense-70b"].hidden * 2
    assert talk(pipeline_parallel=4, tensor_parallel=2).token_bytes == said.token_bytes + talk(tensor_parallel=2).token_bytes


def test_slower_wires_take_longer_for_the_same_bytes() -> None:
    whole, half = talk(tensor_parallel=4), talk(tensor_parallel=4, slowed=0.5)
    assert (half.token_s, half.token_bytes, half.fixed_s) == (pytest.approx(2 * whole.token_s), whole.token_bytes, whole.fixed_s)
