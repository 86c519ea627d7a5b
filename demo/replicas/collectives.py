"""The time that the ranks of a replica talk in one iteration, by degree and tokens: all-reduce, all-to-all, and hops between stages.

Formulas: NCCL's bus bandwidth for all-reduce, 2 (n - 1) / n of the bytes each way; (n - 1) / n for all-to-all.
"""

from __future__ import annotations

from dataclasses import dataclass

from demo.replicas.hardware import Hardware, Network
from demo.replicas.serving import Serving

ACTIVATION_BYTES = 2


@dataclass(frozen=True, slots=True)
class Collectives:
    """Seconds of an iteration: some whatever the tokens, and some a token."""

    fixed_s: float
    token_s: float
    token_bytes: float
    """What a rank sends for a token."""

    def seconds(self, tokens: float) -> float:
        """The time of an iteration over so many tokens."""
        return self.fixed_s + tokens * self.token_s


def collectives(network: Network, hardware: Hardware, serving: Serving, slowed: float = 1.0) -> Collectives:
    """What one iteration talks; the wires run at `slowed` of their rate."""
    none = Collectives(0.0, 0.0, 0.0)
    ways = [
        _all_reduces(network, hardware, serving.tensor_parallel, slowed) if serving.expert_parallel == 1 else none,
        _all_to_alls(network, hardware, serving.expert_parallel, slowed),
        _hops(network, hardware, serving, slowed),
    ]
    return Collectives(sum(way.fixed_s for way in ways), sum(way.token_s for way in ways), sum(way.token_bytes for way in ways))


def _wire(hardware: Hardware, ranks: int) -> tuple[float, float]:
    """(bytes a second, latency) between so many ranks: within a node, or out of it."""
    if ranks <= hardware.node_gpus:
        return hardware.node_bytes_per_s, hardware.node_latency_s
    return hardware.network_bytes_per_s, hardware.network_latency_s


def _all_reduces(network: Network, hardware: Hardware, ranks: int, slowed: float) -> Collectives:
    """Two a layer, over each token's hidden state."""
    if ranks == 1:
        return Collectives(0.0, 0.0, 0.0)
    bytes_per_s, latency_s = _wire(hardware, ranks)
    share = 2 * (ranks - 1) / ranks * network.hidden * ACTIVATION_BYTES
    return _each(2 * network.layers, latency_s * (ranks - 1) ** 0.5, share, bytes_per_s * slowed)


def _all_to_alls(network: Network, hardware: Hardware, ranks: int, slowed: float) -> Collectives:
    """Two a layer: tokens to their experts and back. Each rank sends its share of the tokens, once an expert."""
    if ranks == 1:
        return Collectives(0.0, 0.0, 0.0)
    bytes_per_s, latency_s = _wire(hardware, ranks)
    share = (ranks - 1) / ranks / ranks * network.hidden * ACTIVATION_BYTES * network.experts_per_token
    return _each(2 * network.layers, latency_s * 2, share, bytes_per_s * slowed)


def _hops(network: Network, hardware: Hardware, serving: Serving, slowed: float) -> Collectives:
    """From each stage to the next, over the network between nodes."""
    hops = serving.pipeline_parallel - 1
    return _each(hops, hardware.network_latency_s * 4, network.hidden * ACTIVATION_BYTES, hardware.network_bytes_per_s * slowed)


def _each(times: int, latency_s: float, token_bytes: float, bytes_per_s: float) -> Collectives:
    return Collectives(times * latency_s, times * token_bytes / bytes_per_s, times * token_bytes)
