"""Many segments of one lever at once: arrays of effects in, what is said of those where nothing can have happened out.

Nothing happens in most streams in most blocks. Which ones these are is told by looking at all of them together, and too strictly rather
than too loosely; the others are judged one by one. What is said here is what `judge` would say, which a test holds equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from alerts import wording
from alerts.carried import WITH_EVIDENCE
from alerts.chain import Condition, Policy, PremiseLost, Quality, Trigger
from alerts.columns import Columns, Places, Reals, Truths
from alerts.conditions import MOST_TRAPPED, explain, gain_limit, holds, is_gain_above
from alerts.effects import ALPHA, BLOCKS_A_CYCLE, LONG_BLOCKS_A_CYCLE, NULLS, Effect, effect_name
from alerts.judge_on import undisturbed
from alerts.soundness import unsound
from alerts.standing import NO_COUNTS, Judgment, Seen, Standing
from alerts.view import View, lacking
from pipeline.metrics import judged

LEAST_STREAMS = 200  # below, one by one is faster
QUALITY = "quality"
_TOLD = ("blocks", "value_a", "value_b", "gain", "gain_low", "gain_high", "margin")
_ALONE = (
    "blocks", "n_a", "n_b", "value_a", "value_b", "gain", "gain_low", "gain_high", "basis", "coverage", "note", "trap", "upstream",
    "trapped_share", "own_value",
)  # fmt: skip
_BLANK = Effect("", *(None,) * 2, 0, 0, 0, *(None,) * 5, "", 0.0, None)  # type: ignore[arg-type]


def calm(
    policy: Policy, columns: Columns, standings: Sequence[Standing | None], seen: Sequence[Seen], quality: Sequence[Effect | None]
) -> Mapping[int, Judgment]:
    """What is said of each segment, by its place, where it is in use, nothing is counted, and no condition can hold in this block.

    `quality` is the effect of the policy's gate for each segment. A standing is None where the block is none for its stream.
    """
    still = np.array([_is_still(standing) for standing in standings], dtype=np.bool_)
    still &= ~(_quality_moves(policy, quality) | columns.unsound())
    for condition in (*policy.disable_when, *policy.gates, *policy.advise_when):
        still &= ~_may_hold(condition, columns)
    guards = [trigger for trigger in policy.disable_when if not isinstance(trigger, PremiseLost | Quality)]
    known = still & _is_sound(policy, columns, effect_name(policy.expected_benefit.metric), compared=True)
    for guard in guards:
        known &= _is_read(policy, columns, guard) | _is_absent(columns, guard)
    found = _kept(policy, columns, np.flatnonzero(known), guards, standings, seen)
    return found | _uncompared(policy, columns, np.flatnonzero(still & _is_alone(policy, columns)), standings, seen)


def _is_still(before: Standing | None) -> bool:
    return before is not None and before.state == "on" and not before.streak and not before.counts


def _quality_moves(policy: Policy, quality: Sequence[Effect | None]) -> Truths:
    """Whether a condition on quality holds, or its numbers are broken; the segments of a model share one effect."""
    asked = [one for one in (*policy.disable_when, *policy.gates) if one.metric == QUALITY]
    said: dict[int, bool] = {}
    for effect in quality:
        if effect is not None and id(effect) not in said:
            known = {QUALITY: effect}
            said[id(effect)] = unsound(known) is not None or any(holds(policy, one, known) for one in asked)
    return np.array([effect is not None and said[id(effect)] for effect in quality], dtype=np.bool_)


def _may_hold(condition: Condition, columns: Columns) -> Truths:
    """Whether a condition may hold: by its interval, by its value, or by evidence, whatever else keeps it from being read."""
    metric, name = judged()[condition.metric], effect_name(condition.metric)
    limit, tests = gain_limit(condition, metric), np.maximum(np.nan_to_num(columns.at("tests", name), nan=1.0), 1.0)
    if limit is None:
        return _may_be_past(condition, columns, tests)
    above, margin = is_gain_above(condition, metric), np.nan_to_num(columns.at("margin", name))
    limits = limit + margin if above else limit - margin
    ends, logs = columns.at("gain_low" if above else "gain_high", name), columns.evidence("above" if above else "below", name)
    nulls = np.array(NULLS)[None, :]
    beyond = nulls >= limits[:, None] if above else nulls <= limits[:, None]
    is_evident = (beyond & (logs >= _enough(tests * BLOCKS_A_CYCLE)[:, None])).any(axis=1)
    return _past(ends, limits, above=above) | is_evident


def _may_be_past(condition: Condition, columns: Columns, tests: Reals) -> Truths:
    threshold = condition.threshold
    if threshold is None:
        return np.zeros(len(columns.segments), dtype=np.bool_)
    above = condition.is_ == "above"
    may = _past(_own(columns, condition.metric), threshold, above=above)
    if isinstance(condition, PremiseLost):
        may |= columns.premise(condition.metric, threshold, above=above) >= _enough(tests * LONG_BLOCKS_A_CYCLE)
    return may


def _enough(blocks: Reals) -> Reals:
    """The evidence that may be acted on, and a hair less: logarithms of two libraries differ in the last digit."""
    return np.log(blocks / ALPHA) - 1e-9


def _past(values: Reals, limits: Reals | float, *, above: bool) -> Truths:
    return values > limits if above else values < limits


def _own(columns: Columns, metric: str) -> Reals:
    own = columns.at("own_value", metric)
    return np.where(np.isnan(own), columns.at("value_a", metric), own)


def _is_sound(policy: Policy, columns: Columns, metric: str, *, compared: bool) -> Truths:
    """Whether a metric can be read: there is enough of it, of enough requests, and it is compared with a control that may decide."""
    fine = ~(columns.at("trapped_share", metric) > MOST_TRAPPED) & (columns.at("coverage", metric) >= policy.minimum_coverage)
    fine &= (columns.at("blocks", metric) >= policy.minimum_blocks) & (columns.at("n_a", metric) >= policy.minimum_requests)
    if not compared:
        return fine & ~np.isnan(_own(columns, metric))
    fine &= columns.is_in("basis", ("control",), metric) & (columns.at("n_b", metric) >= policy.minimum_requests)
    fine &= ~columns.is_in("permission", ("refused", "unseen"), metric)
    if metric in WITH_EVIDENCE:
        fine &= columns.has_evidence(metric)
    for doubt in ("sample_ratio_off", "uncalibrated"):
        fine &= ~(columns.at(doubt, metric) > 0)
    return fine & ~np.isnan(columns.at("gain_low", metric)) & ~np.isnan(columns.at("gain_high", metric))


def _is_read(policy: Policy, columns: Columns, guard: Trigger) -> Truths:
    compared = gain_limit(guard, judged()[guard.metric]) is not None
    return _is_sound(policy, columns, effect_name(guard.metric), compared=compared)


def _is_absent(columns: Columns, guard: Trigger) -> Truths:
    """Whether a guard was not measured at all: that it holds only where something else does, may make up for it."""
    return columns.places(effect_name(guard.metric)) < 0 if not guard.where else np.zeros(len(columns.segments), dtype=np.bool_)


def _is_alone(policy: Policy, columns: Columns) -> Truths:
    """Whether the benefit is compared with nothing that says anything."""
    name = effect_name(policy.expected_benefit.metric)
    is_other = columns.is_in("basis", ("control", "switchback", "evaluations"), name) | columns.is_in("says", ("pays", "loses"), name)
    return (columns.places(name) >= 0) & ~is_other


def _kept(
    policy: Policy,
    columns: Columns,
    places: Places,
    guards: Sequence[Trigger],
    standings: Sequence[Standing | None],
    seen: Sequence[Seen],
) -> dict[int, Judgment]:
    """Keep, with the benefit's numbers."""
    name, least = effect_name(policy.expected_benefit.metric), policy.expected_benefit.minimum_gain
    absent = [(_is_absent(columns, guard), explain(policy, guard, {})) for guard in guards]
    found = {}
    for place, (blocks, value_a, value_b, gain, low, high, margin) in zip(places.tolist(), columns.rows(name, places, _TOLD), strict=True):
        benefit = Effect(name, *_BLANK[1:3], blocks, 0, 0, value_a, value_b, gain, low, high, "control", 0.0, None, margin=margin)
        said = [wording.compared(benefit), *(text for is_absent, text in absent if is_absent[place]), seen[place].quality]
        again, before = seen[place].again, standings[place]
        if again:
            said.append(again)
        code = "pays" if low > least + (margin or 0.0) else "no_harm"
        if before is not None:
            found[place] = Judgment("keep", "keep", code, "; ".join(said), before.state, before.state_since, 0)
    return found


def _uncompared(
    policy: Policy, columns: Columns, places: Places, standings: Sequence[Standing | None], seen: Sequence[Seen]
) -> dict[int, Judgment]:
    """What is said where there is nothing to compare with: the numbers of the premises."""
    name = effect_name(policy.expected_benefit.metric)
    effects: dict[int, dict[str, Effect]] = {place: {} for place in places.tolist()}
    for metric in {name, *(effect_name(one.metric) for one in policy.disable_when if isinstance(one, PremiseLost))}:
        having = places[columns.places(metric)[places] >= 0]
        for place, row in zip(having.tolist(), columns.rows(metric, having, _ALONE), strict=True):
            effects[place][metric] = _BLANK._replace(metric=metric, **dict(zip(_ALONE, row, strict=True)))
    found = {}
    for place, known in effects.items():
        before = standings[place]
        view = View(policy, known, seen[place], known[name], (), lacking(policy, known[name], known), (), NO_COUNTS)
        if before is not None:
            found[place] = undisturbed(view, before)
    return found
