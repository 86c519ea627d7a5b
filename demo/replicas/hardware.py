"""Accelerators and networks by name: the figures that a roofline needs, as their makers state them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

COMPUTE_EFFICIENCY = 0.6
"""The share of the stated rate of arithmetic that dense layers reach."""
MEMORY_EFFICIENCY = 0.75
USABLE_MEMORY = 0.9
"""The rest is workspace and activations."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """One accelerator. Rates are in one direction; `flops_per_s` is dense, at 16 bits."""

    flops_per_s: float
    memory_bytes_per_s: float
    memory_bytes: float
    node_gpus: int
    node_bytes_per_s: float
    node_latency_s: float
    network_bytes_per_s: float
    network_latency_s: float = 12e-6


@dataclass(frozen=True, slots=True)
class Network:
    """A model's weights. `active` are the parameters that one token meets; `shared` those of them that are in no expert."""

    parameters: float
    active: float
    shared: float
    layers: int
    hidden: int
    kv_bytes_per_token: float
    experts: int = 1
    experts_per_token: int = 1


HARDWARE: Mapping[str, Hardware] = MappingProxyType(
    {
        "h100": Hardware(989e12, 3.35e12, 80e9, 8, 450e9, 4e-6, 50e9),
        "a100": Hardware(312e12, 2.04e12, 80e9, 8, 300e9, 5e-6, 25e9),
        "l40s": Hardware(362e12, 0.864e12, 48e9, 8, 25e9, 12e-6, 12.5e9),
        "l4": Hardware(121e12, 0.3e12, 24e9, 8, 12e9, 12e-6, 6.25e9),
    }
)
NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        "dense-8b": Network(8e9, 8e9, 8e9, 32, 4096, 131_072),
        "dense-13b": Network(13e9, 13e9, 13e9, 40, 5120, 819_200),
        "dense-34b": Network(34e9, 34e9, 34e9, 48, 8192, 196_608),
        "dense-70b": Network(70e9, 70e9, 70e9, 80, 8192, 327_680),
        "moe-47b": Network(47e9, 13e9, 1.6e9, 32, 4096, 131_072, experts=8, experts_per_token=2),
        "moe-106b": Network(106e9, 12e9, 5e9, 46, 4096, 188_416, experts=128, experts_per_token=8),
    }
)
