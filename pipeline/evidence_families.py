"""Which metrics' arms are contrasted together, and from what: a family shares its blocks, and each has state of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.inference.block_length import LEAST_CONTROL

ARMS = ("treated", "control")
SUMS = ("n", "num", "den", "num_sq", "den_sq", "num_den")
NULLS = (-0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1)
"""Gains against which evidence is kept, of a gain below and of one above. Those below 0 are for arms that differ by their replicas too."""
NO_GAIN = NULLS.index(0.0)


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics of one kind. `made_of` names the sums of `raw` that each of `metrics` is made of.

    `needed` is how many of control's requests a block takes before it says anything. `charged` metrics are charged with the TTFT that the
    lever added. `nulls` are the places of NULLS that are kept. `together` is how many base blocks it takes at least. `levels` are what a
    metric's contrasts are relative to, where that is known in advance; else it is what both arms have in the block.
    """

    name: str
    made_of: Mapping[str, str]
    needed: float = LEAST_CONTROL
    charged: frozenset[str] = field(default_factory=frozenset)
    nulls: tuple[int, ...] = tuple(range(len(NULLS)))
    together: int = 1
    levels: Mapping[str, float] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[str, ...]:
        """What is contrasted."""
        return tuple(self.made_of)

    @property
    def raw(self) -> tuple[str, ...]:
        """Whose sums are gathered."""
        return tuple(dict.fromkeys(self.made_of.values()))


MEANS = Family(
    "means",
    {"net_itl_s": "tpot_s", "tpot_s": "tpot_s", "ttft_s": "ttft_s", "error_rate": "error_rate", "e2e_s": "e2e_s"},
    charged=frozenset({"net_itl_s"}),
)
TIMES = Family("times", {metric: MEANS.made_of[metric] for metric in ("net_itl_s", "tpot_s", "ttft_s")}, charged=MEANS.charged)
WHOLE = Family("whole", {"e2e_s": "e2e_s"})
"""A request's whole time has blocks of its own: how long they are goes by its own day, and delays no other time."""
FAMILIES = (TIMES, WHOLE)
"""What is judged by its means. Errors are by their incidents (`incident_streams.py`), tails by exceedances (`tail_families.py`)."""
