"""What the simulated fleet hands to its emitters: requests that were served, and what each replica shows when it is looked at.

Seconds, bytes, tokens, ratios; moments in Unix nanoseconds; None is not there. An emitter says of it what its engine says, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Role = Literal["unified", "prefill", "decode"]
Outcome = Literal["ok", "error", "aborted"]


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """A process of an engine with its settings: the facts that its environment states. `levers` and `arms` go by lever, in order.
    Each is itself alone: two that say the same are not equal."""

    engine: str
    model: str
    hardware: str
    topology: str
    gpus: int
    replica: str
    role: Role = "unified"
    levers: tuple[tuple[str, str], ...] = ()
    arms: tuple[tuple[str, str], ...] = ()
    link_peak_bytes_per_s: float | None = None
    kv_block_tokens: int = 16
    kv_blocks: int = 1
    speculative_tokens: int | None = None

    @property
    def process_id(self) -> int:
        """Of the engine's front end: the same whenever it is asked."""
        return 1000 + sum(place * byte for place, byte in enumerate(self.replica.encode(), 1)) % 60000


class Request(NamedTuple):
    """One attempt to serve a request, as the replica that gave its tokens knows it; `prefill_at` read the prompt where another one did.

    `started_ns` is the arrival at the engine's front end, `parent_span_id` the caller's span. frontend_s + queue_s + prefill_s (+
    kv_transfer_s + decode_queue_s) = ttft_s; ttft_s + decode_s + a little = e2e_s. `queue_s` and `prefill_s` are of the place that read
    the prompt; `decode_queue_s` waited for room on the decode worker. Gaps of preemptions are in decode_s. The counts of speculation are
    None where it was off; `accepted_tokens` is without each step's own token. Of an aborted request, `output_tokens` are those that came;
    `attempt` counts from 1, and attempts of one request share `request_key` and `trace_id`.
    """

    started_ns: int
    trace_id: bytes
    parent_span_id: bytes
    request_key: bytes
    attempt: int
    at: Deployment
    prefill_at: Deployment | None
    tenant: str
    outcome: Outcome
    finish_reason: str
    temperature: float
    top_p: float
    max_tokens: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    frontend_s: float
    queue_s: float
    prefill_s: float
    kv_transfer_s: float | None
    kv_transfer_bytes: float | None
    decode_queue_s: float
    decode_s: float
    ttft_s: float
    e2e_s: float
    draft_tokens: int | None
    accepted_tokens: int | None
    verify_steps: int | None
    accepted_by_position: tuple[int, ...] | None
    decode_steps: int
    batch: int
    queue_depth: int
    preemptions: int

    @property
    def ended_ns(self) -> int:
        """When the last token left the front end."""
        return self.started_ns + round(self.e2e_s * 1e9)


class Reading(NamedTuple):
    """A replica looked at: levels now, and counts since it began. `cached_tokens`, `prompt_tokens` are of prompts begun so far, the
    others of requests ended. `seconds_busy` counts iterations; `collective_s` and `collective_bytes` what its ranks said to each other."""

    at_ns: int
    of: Deployment
    running: int
    waiting: int
    transferring: int
    kv_used_blocks: float
    kv_cached_blocks: int
    memory_used_bytes: float
    memory_free_bytes: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    draft_tokens: int
    accepted_tokens: int
    verify_steps: int
    accepted_by_position: tuple[int, ...]
    preemptions: int
    evicted_blocks: int
    iterations: float
    seconds_busy: float
    collective_s: float
    collective_bytes: float


class Score(NamedTuple):
    """A quality score, as an evaluation job posts it; `setting` is `original` for the model before its lever."""

    at_ns: int
    suite: str
    kind: Literal["perplexity", "public_benchmark", "product"]
    model: str
    lever: str
    setting: str
    run_id: str
    repeat: int
    score: float
    better: Literal["higher", "lower"]
    n: int
    temperature: float
