"""Scenario files: TOML in, a frozen `Scenario` out: the fleet, what changes in it and when, and the truth a right verdict finds."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator
from importlib import resources

import msgspec

from demo.replicas.hardware import HARDWARE, NETWORKS
from demo.replicas.roofline import DoesNotFitError, Roofline
from demo.scenarios.bounds import complaints
from demo.scenarios.layout import TRAFFIC_KNOBS, Pool, Scenario


class ScenarioError(ValueError):
    """A scenario is unknown, or its file says something that cannot be played."""


def names() -> tuple[str, ...]:
    """The names of all scenarios, sorted."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in resources.files(__name__).iterdir() if entry.name.endswith(".toml")))


def load(name: str) -> Scenario:
    """The scenario of that name. Raises ScenarioError with the nearest name, or with the file and the key that is wrong."""
    if name not in names():
        msg = f"scenario {_unknown(name, names())}"
        raise ScenarioError(msg)
    return parse((resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8"), f"demo/scenarios/{name}.toml")


def parse(text: str, where: str) -> Scenario:
    """A scenario from its TOML text; `where` stands in front of errors. Raises ScenarioError."""
    try:
        scenario = msgspec.toml.decode(text, type=Scenario)
    except (msgspec.MsgspecError, RecursionError) as error:
        msg = f"{where}: {error}"
        raise ScenarioError(msg) from error
    for complaint in itertools.chain(complaints(scenario), _unknown_names(scenario), _unplayable(scenario)):
        msg = f"{where}: {complaint}"
        raise ScenarioError(msg)
    return scenario


def _unknown_names(scenario: Scenario) -> Iterator[str]:
    pools, mixes = [pool.name for pool in scenario.pools], [mix.name for mix in scenario.traffic]
    yield from (f"{kind}.name: {name!r} stands twice" for kind, all_of in (("pools", pools), ("traffic", mixes)) for name in _twice(all_of))
    for place, pool in enumerate(scenario.pools):
        yield from _named(f"pools[{place}].network", pool.network, NETWORKS)
        yield from _named(f"pools[{place}].hardware", pool.hardware, HARDWARE)
    for place, mix in enumerate(scenario.traffic):
        yield from _named(f"traffic[{place}].pool", mix.pool, pools)
    for place, change in enumerate(scenario.changes):
        yield from _named(f"changes[{place}].of", change.of, mixes if change.knob in TRAFFIC_KNOBS else pools)
    for place, evaluation in enumerate(scenario.evaluations):
        yield from _named(f"evaluations[{place}].pool", evaluation.pool, pools)


def _unplayable(scenario: Scenario) -> Iterator[str]:
    for place, pool in enumerate(scenario.pools):
        yield from (f"pools[{place}].{complaint}" for complaint in (*_uneven(pool), *_too_big(pool)))
    for place, mix in enumerate(scenario.traffic):
        if mix.input_tokens[0] > mix.input_tokens[1]:
            yield f"traffic[{place}].input_tokens: the lower end {mix.input_tokens[0]} is above the upper one {mix.input_tokens[1]}"
    for place, truth in enumerate(scenario.truth):
        if (truth.from_hour is None) != (truth.after is None):
            yield f"truth[{place}]: from_hour and after go together"
    for place, evaluation in enumerate(scenario.evaluations):
        if next(pool for pool in scenario.pools if pool.name == evaluation.pool).lever is None:
            yield f"evaluations[{place}].pool: {evaluation.pool!r} has no lever to be evaluated"


def _uneven(pool: Pool) -> Iterator[str]:
    if pool.control is None:
        return
    if pool.lever is None:
        yield "control: there is no lever that it is the control of"
    if pool.groups % pool.control_every:
        yield f"groups: {pool.groups}: with a control it takes a multiple of control_every, {pool.control_every}"
    treated, control = pool.serving.split, pool.control.split
    if treated is not None and control is not None and (treated.prefill, treated.decode) != (control.prefill, control.decode):
        yield "control.split: the groups of both arms have the same workers"
    if treated is None and control is not None:
        yield "control.split: a split is the treated arm's"


def _too_big(pool: Pool) -> Iterator[str]:
    for key, serving in (("serving", pool.serving), ("control", pool.control)):
        if serving is not None:
            try:
                Roofline(NETWORKS[pool.network], HARDWARE[pool.hardware], serving)
            except DoesNotFitError as error:
                yield f"{key}: {error}"


def _twice(found: list[str]) -> list[str]:
    return sorted({name for name in found if found.count(name) > 1})


def _named(where: str, name: str, known: Iterable[str]) -> Iterator[str]:
    if name not in known:
        yield f"{where}: {_unknown(name, known)}"


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"{name!r} is unknown; {f'did you mean {near[0]!r}? ' if near else ''}known: {', '.join(known)}"
