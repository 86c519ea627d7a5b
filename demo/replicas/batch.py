"""The sequences that decode on a replica, each a step an iteration: who joins and leaves in, what an iteration holds and who ends, out."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from demo.replicas.sequence import Sequence

NEARLY = 1e-7
"""Iterations: what is nearer than this has come."""


class Batch:
    """Sums over its `size` sequences: tokens that come and that are computed an iteration, contexts, and how many draft."""

    __slots__ = ("_ends", "_members", "_order", "computed", "context", "drafting", "rate", "size")

    def __init__(self) -> None:
        self._members: dict[Sequence, None] = {}
        self._ends: list[tuple[float, int, Sequence]] = []
        self._order = self.drafting = self.size = 0
        self.rate = self.computed = self.context = 0.0

    @property
    def latest(self) -> Sequence:
        """The sequence that joined last."""
        return next(reversed(self._members))

    def join(self, sequence: Sequence, iteration: float) -> None:
        """A sequence gets steps from this iteration on."""
        sequence.joined_iteration = iteration
        sequence.finish_iteration = iteration + sequence.left_iterations
        self._order += 1
        heapq.heappush(self._ends, (sequence.finish_iteration, self._order, sequence))
        self._members[sequence] = None
        self.size += 1
        self.rate += sequence.rate
        self.computed += sequence.computed_per_step
        self.context += sequence.arrival.prompt_tokens + sequence.generated
        self.drafting += sequence.drafted is not None

    def leave(self, sequence: Sequence, generated: float) -> None:
        """A sequence with so many generated tokens gets no more steps."""
        del self._members[sequence]
        self.size -= 1
        sequence.finish_iteration = math.inf
        self.drafting -= sequence.drafted is not None
        if not self.size:
            self.rate = self.computed = self.context = 0.0
            return
        self.rate -= sequence.rate
        self.computed -= sequence.computed_per_step
        self.context -= sequence.arrival.prompt_tokens + generated

    def next_end(self) -> float:
        """The iteration in which the next one ends; infinity where nobody does."""
        ends = self._ends
        while ends and ends[0][0] != ends[0][2].finish_iteration:  # it left before, and may have joined again
            heapq.heappop(ends)
        return ends[0][0] if ends else math.inf

    def ended(self, iteration: float) -> Iterator[Sequence]:
        """Those that end up to an iteration leave, one after another."""
        while self.next_end() <= iteration + NEARLY:
            sequence = heapq.heappop(self._ends)[2]
            self.leave(sequence, sequence.arrival.output_tokens - 1)
            yield sequence
