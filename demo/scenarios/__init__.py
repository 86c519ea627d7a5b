"""Scenario files: TOML in, a frozen `Scenario` out: the fleet, what changes in it and when, and the truth a right verdict finds."""

from __future__ import annotations

import difflib
from importlib import resources
from typing import Annotated

import msgspec

CONTROL_EVERY = 4
"""One replica of this many is control."""

Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class ScenarioError(ValueError):
    """A scenario is unknown, or its file says something that cannot be played."""


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Noise(_Row, frozen=True):
    """Relative scatter of a step's time: per request, and shared by all of a lane or of a replica during a block."""

    request_cv: NotNegative
    block_sd: NotNegative
    replica_sd: NotNegative


class Day(_Row, frozen=True):
    """The load over a day: 1 ± swing, highest at `peak_hour`, counted from the scenario's start."""

    swing: Share
    peak_hour: NotNegative


class Speculation(_Row, frozen=True):
    """What drafting does: tokens drafted in a step that drafts, how many hold, how many steps draft, and what verifying costs."""

    setting: str
    draft_tokens: Count
    acceptance: Share
    coverage: Share
    overhead_s: NotNegative
    verify_per_sequence_s: NotNegative


class Transfer(_Row, frozen=True):
    """The way of the KV cache from a prefill to a decode worker."""

    base_s: NotNegative
    per_token_s: NotNegative


class Lane(_Row, frozen=True):
    """The replicas that serve one input length; `batch` is what one of them runs at mean load, unsampled requests included."""

    input_tokens: tuple[int, int]
    replicas: Count
    requests_per_s: Positive
    batch: Positive
    per_sequence_s: NotNegative
    cache_hit: Share
    cached_share: Share
    output_median_tokens: Positive
    output_sigma: NotNegative

    @property
    def input_bucket(self) -> str:
        """The bucket's name as users see it, such as `2048-8191`."""
        return f"{self.input_tokens[0]}-{self.input_tokens[1]}"


class Pool(_Row, frozen=True):
    """One model on one kind of machine."""

    model: str
    engine: str
    hardware: str
    topology: str
    gpus: Count
    temperature: NotNegative
    max_tokens: Count
    base_step_s: Positive
    prefill_per_token_s: Positive
    lanes: tuple[Lane, ...]
    speculation: Speculation | None = None
    transfer: Transfer | None = None


class Change(_Row, frozen=True):
    """What goes wrong: a lane's batch is multiplied, growing into it over some hours."""

    model: str
    input_bucket: str
    from_hour: NotNegative
    over_hours: NotNegative
    batch_factor: Positive


class Truth(_Row, frozen=True):
    """The gain a lever really has in a segment, and from `from_hour` on what it has then."""

    lever: str
    segment: dict[str, str]
    gain: float
    from_hour: float | None = None
    gain_after: float | None = None


class Scenario(_Row, frozen=True):
    """A fleet's history of `hours`, and how it goes on."""

    name: str
    what: str
    hours: Positive
    noise: Noise
    day: Day
    pools: tuple[Pool, ...]
    changes: tuple[Change, ...] = ()
    truth: tuple[Truth, ...] = ()


def names() -> tuple[str, ...]:
    """The names of all scenarios, sorted."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in resources.files(__name__).iterdir() if entry.name.endswith(".toml")))


def load(name: str) -> Scenario:
    """The scenario of that name. Raises ScenarioError with the nearest name, or with the file and the key that is wrong."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        msg = f"no scenario {name!r}; known: {', '.join(names())}" + (f"; did you mean {near[0]!r}?" if near else "")
        raise ScenarioError(msg)
    return parse((resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8"), f"demo/scenarios/{name}.toml")


def parse(text: str, where: str) -> Scenario:
    """A scenario from its TOML text; `where` stands in front of errors. Raises ScenarioError."""
    try:
        scenario = msgspec.toml.decode(text, type=Scenario)
    except msgspec.MsgspecError as error:
        msg = f"{where}: {error}"
        raise ScenarioError(msg) from error
    for complaint in (*_uneven(scenario), *_unplaced(scenario)):
        msg = f"{where}: {complaint}"
        raise ScenarioError(msg)
    return scenario


def _uneven(scenario: Scenario) -> list[str]:
    return [
        f"{pool.model} {lane.input_bucket}: replicas is {lane.replicas}; with speculation it takes a multiple of {CONTROL_EVERY}"
        for pool in scenario.pools
        for lane in pool.lanes
        if pool.speculation and lane.replicas % CONTROL_EVERY
    ]


def _unplaced(scenario: Scenario) -> list[str]:
    lanes = {(pool.model, lane.input_bucket) for pool in scenario.pools for lane in pool.lanes}
    named = [(change.model, change.input_bucket) for change in scenario.changes]
    named += [(truth.segment.get("model", ""), truth.segment.get("input_bucket", "")) for truth in scenario.truth]
    known = ", ".join(" ".join(lane) for lane in sorted(lanes))
    return [f"no lane {' '.join(lane)!r}; known: {known}" for lane in named if lane not in lanes]
