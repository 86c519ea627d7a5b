"""How a replica serves: the settings of its levers, as a scenario states them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Bits = Literal[4, 8, 16]


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a scenario; a key that it does not have is refused."""


class Speculation(Row, frozen=True):
    """Drafting: `acceptance` is the chance of each position's draft once those before it hold, the last one stands for all that follow.

    It falls by `temperature_slope` of itself per unit of temperature. `coverage` is the share of steps that draft; `draft_step_s` is the
    time of drafting one position, `overhead_s` of a step that drafts at all.
    """

    draft_tokens: Annotated[int, msgspec.Meta(ge=1, le=16)]
    acceptance: Annotated[tuple[Share, ...], msgspec.Meta(min_length=1)]
    coverage: Share = 1.0
    temperature_slope: NotNegative = 0.0
    draft_step_s: NotNegative = 0.0
    overhead_s: NotNegative = 0.0


class Affinity(Row, frozen=True):
    """Routing to where a prefix was served before; with a `cap`, not to a replica that has so many times the mean load."""

    by: Literal["tenant", "session"] = "session"
    cap: NotNegative = 0.0


class Split(Row, frozen=True):
    """Prefill and decode apart, in groups of so many workers. A prompt with fewer new tokens than `local_below_tokens` stays on the
    decode worker; the others' state moves over a link of each prefill worker."""

    prefill: Count
    decode: Count
    link_bytes_per_s: Positive
    link_latency_s: NotNegative = 0.002
    local_below_tokens: int = 0


class Serving(Row, frozen=True):
    """The settings of one arm. `kv_tokens` is the cache's size where it is not what the memory leaves."""

    tensor_parallel: Count = 1
    expert_parallel: Count = 1
    pipeline_parallel: Count = 1
    weight_bits: Bits = 16
    activation_bits: Bits = 16
    kv_bits: Bits = 16
    prefix_caching: bool = True
    lookup_s_per_block: NotNegative = 0.0
    speculation: Speculation | None = None
    affinity: Affinity | None = None
    split: Split | None = None
    kv_tokens: int | None = None
    max_sequences: Count = 256
    chunk_tokens: Count = 2048
    step_overhead_s: NotNegative = 0.002

    @property
    def gpus(self) -> int:
        """Accelerators of one worker."""
        return max(self.tensor_parallel, self.expert_parallel) * self.pipeline_parallel

    @property
    def topology(self) -> str:
        """As users name it: `tp4`, `tp4-ep8`, `tp8-pp2`, `pd-1p2d`."""
        if self.split is not None:
            return f"pd-{self.split.prefill}p{self.split.decode}d"
        degrees = [("pp", self.pipeline_parallel), ("ep", self.expert_parallel)]
        return "-".join([f"tp{self.tensor_parallel}", *(f"{name}{degree}" for name, degree in degrees if degree > 1)])
