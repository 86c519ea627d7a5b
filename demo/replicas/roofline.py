"""What an iteration of a replica costs: sequences, tokens and contexts in, seconds out.

An iteration gives every running sequence a step, and reads a chunk of prompts. It lasts as long as its arithmetic and its
reading together: 2 operations a parameter and token, and the weights and the cached keys and values. That they do not overlap is what
engines show: the time of a step is close to a straight line over its batch. So more tokens always cost something, and a replica slows down
before it is full. Pipeline stages hold a part of the layers each and pass micro-batches on; experts are read as far as the tokens of the
iteration meet them.
"""

from __future__ import annotations

from typing import NamedTuple

from demo.replicas.collectives import Collectives, collectives
from demo.replicas.hardware import COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY, USABLE_MEMORY, Hardware, Network
from demo.replicas.serving import Serving

GB = 1e9
UNPACKING = 1.06
"""Weights of few bits are unpacked where arithmetic is wider."""
KV_UNPACKING = 1.03


class DoesNotFitError(ValueError):
    """A model's weights leave no room on the accelerators of a worker."""


class Work(NamedTuple):
    """What an iteration holds: running sequences, the tokens they compute, all context that is read, a chunk of prompts with the context
    that each of its tokens sees, and the time of drafting."""

    sequences: int
    tokens: float
    context: float
    chunk: float = 0.0
    chunk_context: float = 0.0
    draft_s: float = 0.0


class Cost(NamedTuple):
    """How long an iteration lasts, how long of that its ranks talk, and of how many tokens: those that go through the stages together."""

    seconds: float
    talk_s: float
    tokens: float


class Roofline:
    """The costs of a replica. `imbalance` is the busiest expert rank's load relative to the mean; wires run at `slowed` of their rate.

    Raises DoesNotFitError.
    """

    def __init__(self, network: Network, hardware: Hardware, serving: Serving, *, imbalance: float = 1.0, slowed: float = 1.0) -> None:
        self._experts = _Experts(network, serving, imbalance)
        flops_per_s = hardware.flops_per_s * COMPUTE_EFFICIENCY * (2 if serving.activation_bits == 8 else 1)
        bytes_per_s = hardware.memory_bytes_per_s * MEMORY_EFFICIENCY
        ranks = max(serving.tensor_parallel, serving.expert_parallel)
        unpacking = UNPACKING if serving.weight_bits < serving.activation_bits else 1.0
        self.penalty = unpacking * (KV_UNPACKING if serving.kv_bits < 16 else 1.0)
        self.token_s = 2 * self._experts.active / ranks / flops_per_s
        self.pair_s = 4 * network.layers * network.hidden / ranks / flops_per_s
        self.weight_s = serving.weight_bits / 8 / bytes_per_s
        self.kv_bytes_per_token = network.kv_bytes_per_token * serving.kv_bits / 16
        self.context_s = self.kv_bytes_per_token / ranks / bytes_per_s
        self.talk: Collectives = collectives(network, hardware, serving, slowed)
        self._stages, self._overhead_s = serving.pipeline_parallel, serving.step_overhead_s
        drafts = serving.speculation
        self._draft_s = drafts.overhead_s + drafts.draft_tokens * drafts.draft_step_s if drafts else 0.0
        self._undrafted = 1 - drafts.coverage if drafts else 1.0
        self.kv_tokens = serving.kv_tokens or _room(network, hardware, serving, self.kv_bytes_per_token)

    def iteration(self, work: Work) -> Cost:
        """What an iteration over this work costs."""
        passes = self._passes(work.sequences) if self._stages > 1 else 1
        tokens = work.tokens / passes + work.chunk
        arithmetic = tokens * self.token_s + work.chunk * work.chunk_context * self.pair_s
        memory = self._experts.read(tokens) * self.weight_s + work.context / passes * self.context_s
        talk_s = self.talk.seconds(tokens)
        return Cost((arithmetic + memory) * self.penalty + self._overhead_s + work.draft_s + talk_s, talk_s, tokens)

    def iteration_s(self, work: Work) -> float:
        """How long an iteration over this work lasts."""
        return self.iteration(work).seconds

    def draft_s(self, sequences: int) -> float:
        """The time of drafting in an iteration with so many sequences that may draft: as often as any of them does."""
        return self._draft_s * (1 - self._undrafted**sequences)

    def _passes(self, sequences: int) -> int:
        """Micro-batches of an iteration: one a stage, as far as there are sequences; the rest of the stages stand idle in turn."""
        return min(self._stages, sequences) or 1


class _Experts:
    """The parameters that a rank computes with and reads."""

    def __init__(self, network: Network, serving: Serving, imbalance: float) -> None:
        apart = serving.expert_parallel > 1
        ranks = max(serving.tensor_parallel, serving.expert_parallel)
        imbalance = imbalance if apart else 1.0
        self._shared_read = network.shared if apart else network.shared / ranks
        self._busiest_read: float = (network.parameters - network.shared) / ranks * imbalance**0.5
        self._missed = 1 - network.experts_per_token / network.experts if network.experts > 1 else 0.0
        self.active = network.shared + (network.active - network.shared) * imbalance

    def read(self, tokens: float) -> float:
        """Parameters that the busiest rank reads for so many tokens."""
        met: float = 1 - self._missed**tokens if self._missed else 1.0
        return self._shared_read + self._busiest_read * met


def _room(network: Network, hardware: Hardware, serving: Serving, kv_bytes_per_token: float) -> int:
    """Tokens of cache that the memory leaves beside the weights; what is in no expert is on every rank of experts."""
    copies = serving.expert_parallel
    usable = serving.gpus * hardware.memory_bytes * USABLE_MEMORY
    weights = (network.parameters + (copies - 1) * network.shared) * serving.weight_bits / 8
    if weights >= usable:
        msg = f"the weights take {weights / GB:.0f} GB, and {serving.gpus} of the accelerators have {usable / GB:.0f} GB for them"
        raise DoesNotFitError(msg)
    return int((usable - weights) / kv_bytes_per_token)
