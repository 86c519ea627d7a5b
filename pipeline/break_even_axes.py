"""The keys along which a lever may stop paying: which metric is compared, how its gain is assumed to go, and the buckets' numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.segments import Edges

BATCH, INPUT_TOKENS, CONTEXT_TOKENS = "batch", "input_tokens", "context_tokens"


@dataclass(frozen=True, slots=True)
class Axis:
    """One key of one lever. `falls`: the gain is assumed to fall along it; data may refute that.

    `is_judged` is false where the key is known only after treatment: its band is shown and nothing follows from it.
    """

    lever: str
    key: str
    metric: str
    falls: bool
    is_judged: bool = True


AXES = (
    Axis("speculation", BATCH, "tpot_s", falls=True),
    Axis("speculation", INPUT_TOKENS, "tpot_s", falls=True),
    Axis("prefix_caching", INPUT_TOKENS, "ttft_s", falls=False),
    Axis("cache_affinity", INPUT_TOKENS, "ttft_s", falls=False),
    Axis("disaggregation", INPUT_TOKENS, "ttft_s", falls=False),
    Axis("conditional_prefill", INPUT_TOKENS, "ttft_s", falls=True),
    Axis("speculation", CONTEXT_TOKENS, "tpot_s", falls=True, is_judged=False),
    Axis("kv_quantization", CONTEXT_TOKENS, "tpot_s", falls=False, is_judged=False),
)


@dataclass(frozen=True, slots=True)
class Buckets:
    """A key's buckets in order: their names as requests have them, and the least and the most that each holds (null: no end)."""

    names: tuple[str, ...]
    least: tuple[int, ...]
    most: tuple[int | None, ...]


def buckets(key: str, edges: Edges) -> Buckets:
    """The buckets of a key; those of context lengths are those of input lengths."""
    of = edges.batch if key == BATCH else edges.input_tokens
    return Buckets((f"<{of[0]}", *_between(of), f">={of[-1]}"), (0, *of), (*(edge - 1 for edge in of), None))


def _between(edges: Sequence[int]) -> list[str]:
    return [str(low) if high - low == 1 else f"{low}-{high - 1}" for low, high in pairwise(edges)]
