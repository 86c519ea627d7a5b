"""A request in service: what it asks of a replica, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence as Blocks

from demo.ids import Ids
from demo.records import Deployment, Outcome
from demo.replicas.drafting import Drafted
from demo.traffic.arrivals import Arrival


class Sequence:
    """One attempt at a request on its way. Moments are seconds of the scenario, `finish_iteration` is one of the replica that decodes."""

    __slots__ = (
        "arrival",
        "at",
        "attempt",
        "batch",
        "blocks",
        "cached_tokens",
        "computed_per_step",
        "decode_queue_s",
        "drafted",
        "finish_iteration",
        "first_token_s",
        "frontend_s",
        "generated",
        "ids",
        "joined_iteration",
        "moved_s",
        "outcome",
        "preemptions",
        "prefill_at",
        "prefilled_s",
        "queue_depth",
        "queued_s",
        "rate",
        "shared",
        "started_s",
        "steps",
        "transfer_bytes",
        "way",
    )  # fmt: skip

    def __init__(self, arrival: Arrival, ids: Ids, attempt: int, outcome: Outcome, drafted: Drafted | None, draft_tokens: int) -> None:
        self.arrival, self.ids, self.attempt, self.outcome = arrival, ids, attempt, outcome
        self.drafted = drafted
        self.steps = drafted.steps if drafted else arrival.output_tokens - 1
        self.rate = (arrival.output_tokens - 1) / self.steps if self.steps else 0.0
        """Tokens an iteration."""
        self.computed_per_step = 1 + (drafted.verify_steps * draft_tokens / self.steps if drafted and self.steps else 0.0)
        self.at: Deployment
        self.prefill_at: Deployment | None = None
        self.frontend_s = self.queued_s = self.started_s = self.first_token_s = self.prefilled_s = 0.0
        self.moved_s: float | None = None
        self.transfer_bytes = self.decode_queue_s = 0.0
        self.cached_tokens = self.batch = self.queue_depth = self.preemptions = 0
        self.generated = self.joined_iteration = 0.0
        self.finish_iteration = -1.0
        self.blocks: Blocks[int] = arrival.blocks
        self.shared = True
        """Whether the cache that holds its blocks may show them to others."""
        self.way: object = None
        """Set where its prompt is read elsewhere than it decodes."""

    @property
    def left_iterations(self) -> float:
        """Iterations until its answer is whole."""
        tokens = self.arrival.output_tokens - 1
        return self.steps * (1 - self.generated / tokens) if tokens else 0.0
