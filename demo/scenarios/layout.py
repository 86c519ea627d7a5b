"""What a scenario file may say, a class a table."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from demo.replicas.serving import Count, NotNegative, Positive, Row, Serving, Share

Engine = Literal["vllm", "sglang", "trtllm", "dynamo"]
Knob = Literal[
    "requests_per_s",
    "input_tokens",
    "output_tokens",
    "system_tokens",
    "turns",
    "temperature",
    "tenant_skew",
    "acceptance",
    "later_acceptance",
    "wire_bytes_per_s",
    "link_bytes_per_s",
    "expert_imbalance",
]
TRAFFIC_KNOBS = ("requests_per_s", "input_tokens", "output_tokens", "system_tokens", "turns", "temperature", "tenant_skew")
Bug = Literal[
    "cached_is_prompt_less_one",
    "recomputed_counts_as_cached",
    "missing_is_minus_one",
    "accepted_includes_bonus",
    "clock_steps_back",
]


class Noise(Row, frozen=True):
    """Relative scatter of an iteration's time over blocks of five minutes: shared by a pool, and of each replica."""

    pool_sd: NotNegative = 0.02
    replica_sd: NotNegative = 0.01


class Day(Row, frozen=True):
    """The load over a day: 1 ± swing, highest at `peak_hour`, counted from the scenario's start. Every `burst_every_hours` on average,
    arrivals are `burst_factor` times as many for `burst_minutes`."""

    swing: Share = 0.0
    peak_hour: float = 0.0
    burst_every_hours: NotNegative = 0.0
    burst_factor: Positive = 3.0
    burst_minutes: Positive = 2.0


class Mix(Row, frozen=True):
    """One kind of traffic to a pool. Prompts are log-uniform in `input_tokens`, answers log-normal and cut at `max_tokens`. The first
    `system_tokens` of a prompt are its tenant's; a conversation has `turns` requests on average, each with the prompts before it in its own
    and about `turn_tokens` more, as far as the prompt is long. The more `tenant_skew`, the more of it is of the first tenants."""

    name: str
    pool: str
    requests_per_s: Positive
    input_tokens: tuple[Count, Count]
    output_median_tokens: Positive
    output_sigma: NotNegative = 0.5
    max_tokens: Count = 2048
    temperatures: Annotated[tuple[NotNegative, ...], msgspec.Meta(min_length=1)] = (0.7,)
    top_p: Share = 1.0
    tenants: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 8
    tenant_skew: NotNegative = 1.0
    system_tokens: NotNegative = 0.0
    turns: Annotated[float, msgspec.Meta(ge=1)] = 1.0
    turn_tokens: Positive = 512.0
    day: Day | None = None


class Pool(Row, frozen=True):
    """The replicas of one model on one kind of machine: `groups` of one worker, or of prefill and decode workers where `serving` splits
    them. `lever` with `setting` is what the groups in the treated arm do; in turn, every half hour, one of `control_every` groups serves as
    `control` says instead, and is said to be `control_setting`. No `control`: there is no control arm. `settings` are other levers, stated.
    """

    name: str
    model: str
    engine: Engine
    network: str
    hardware: str
    groups: Count
    serving: Serving = Serving()
    lever: str | None = None
    setting: str = "on"
    control: Serving | None = None
    control_every: Annotated[int, msgspec.Meta(ge=2)] = 4
    control_setting: str = "off"
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    kv_block_tokens: Count = 128
    expert_imbalance: Annotated[float, msgspec.Meta(ge=1)] = 1.0
    frontend_s: NotNegative = 0.004


class Change(Row, frozen=True):
    """What happens: a knob of a pool or of a mix is turned by a factor, over some hours."""

    knob: Knob
    of: str
    from_hour: float
    factor: Positive
    over_hours: NotNegative = 0.0


class Evaluation(Row, frozen=True):
    """A suite that is run on a pool's model, original and treated: each time `repeats` of the original, and from `from_hour` on a treated
    mean of `treated_after` in place of `treated`; `sd` is the scatter of a repeat."""

    suite: str
    kind: Literal["perplexity", "public_benchmark", "product"]
    pool: str
    better: Literal["higher", "lower"]
    original: float
    treated: float
    sd: Positive
    every_hours: Positive = 1.0
    repeats: Count = 5
    n: Count = 500
    temperature: NotNegative = 0.0
    from_hour: float = 0.0
    treated_after: float | None = None


class Disorder(Row, frozen=True):
    """What a real fleet's telemetry suffers from: shares of requests, seconds by which a replica's clock is ahead, engine bugs."""

    abort_share: Share = 0.0
    error_share: Share = 0.0
    retry_share: Share = 0.0
    duplicate_share: Share = 0.0
    clock_ahead_s: dict[str, float] = msgspec.field(default_factory=dict)
    bugs: tuple[Bug, ...] = ()


class Truth(Row, frozen=True):
    """What is so: `question` names a file of `demo/questions`, SQL over `requests` that gives `value`: `before` until `from_hour` and
    `after` from then on, each within `tolerance`. The right advice then is `action`, at most `within_hours` later."""

    lever: str
    segment: dict[str, str]
    question: str
    before: float
    tolerance: Positive
    why: str
    action: str = "keep"
    from_hour: float | None = None
    after: float | None = None
    within_hours: Positive | None = None


class Scenario(Row, frozen=True):
    """A fleet's history of `hours`, which it may go beyond, and what is true of it. It is looked at every `scrape_s`."""

    name: str
    what: str
    hours: Annotated[float, msgspec.Meta(gt=0, le=10)]
    pools: tuple[Pool, ...]
    traffic: tuple[Mix, ...] = ()
    day: Day = Day()
    noise: Noise = Noise()
    changes: tuple[Change, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    disorder: Disorder = Disorder()
    truth: tuple[Truth, ...] = ()
    scrape_s: Positive = 60.0
