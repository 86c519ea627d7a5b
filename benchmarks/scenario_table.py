"""Results of played scenarios in, the tables of docs/statistics.md out: harm and when it was found, and accusations of the innocent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from calibrate_table import header, row
from demo_plays import TWIN, Play
from demo_trial import Accused, Fared, Found
from demo_truths import left_out
from scipy.stats import binom

from demo import scenarios

ALPHA = 0.05
CERTAIN = 0.01
"""The level at which a rate above ALPHA is told from chance."""


class Group(NamedTuple):
    """Streams that are tried alike, each with the accusations that would be false."""

    name: str
    members: list[tuple[Fared, tuple[Accused, ...]]]


def told(chosen: Sequence[Play], results: Sequence[Any]) -> Iterator[str]:
    """Both tables, and what is left out."""
    yield ""
    yield from _harm(chosen, results)
    yield ""
    yield from _innocence(results)
    yield ""
    yield from _left_out()


def _harm(chosen: Sequence[Play], results: Sequence[Any]) -> Iterator[str]:
    yield from header("scenario, segment", "metric", "stated, h", "found in time", "after, h: p50/p90", "seeds")
    for play in chosen:
        mine = [fared for one in results if one.play == play.name for fared in one.streams if fared.found]
        for lever, segment, metric in dict.fromkeys((one.lever, one.segment, one.metric) for one in mine):
            found = [one.found[0] for one in mine if (one.lever, one.segment, one.metric) == (lever, segment, metric)]
            at = f"{found[0].within_hours:g}" + (f", past {found[0].limit:+.0%}" if found[0].limit else "")
            share = f"{sum(one.at.latched is not None for one in found)} of {len(found)}"
            yield row(f"{play.name}, {_short(segment)}", metric, at, share, _delays(found), str(len(found)))


def _delays(found: Sequence[Found]) -> str:
    late = [np.inf if one.at.latched is None else one.at.latched - one.from_hour for one in found]
    low, high = np.quantile(late, [0.5, 0.9], method="inverted_cdf")
    return "/".join(f"{value:.2f}" if np.isfinite(value) else "-" for value in (low, high))


def _innocence(results: Sequence[Any]) -> Iterator[str]:
    yield from header("streams", "streams and cycles", "accused alone", "per cycle", "5 % is refuted above", "latched")
    for group in _groups(results):
        cycles = sum(one.cycles for one, _ in group.members)
        alone, latched = (
            sum(any(getattr(side, how) is not None for side in sides) for _, sides in group.members) for how in ("alone", "latched")
        )
        most = int(binom.ppf(1 - CERTAIN, max(1, round(cycles)), ALPHA))
        yield row(
            group.name, f"{len(group.members)}; {cycles:.0f}", str(alone), f"{alone / max(cycles, 1e-9):.3f}", str(most), str(latched)
        )


def _groups(results: Sequence[Any]) -> Iterator[Group]:
    """What is stated to gain; what is not stated, and by all seeds together does not lose; and what no lever does anything to."""
    watched = [(one.play, fared) for one in results for fared in one.streams if fared.cycles]
    twins = [fared for play, fared in watched if play.endswith(TWIN)]
    plain = [(play, fared) for play, fared in watched if not play.endswith(TWIN)]
    losing = _losing(plain)
    yield Group("said to gain: harm", [(one, (one.harm,)) for _, one in plain if one.is_stated])
    unsaid = [one for play, one in plain if not one.is_stated and _named(play, one) not in losing]
    yield Group("nothing said, none lost: harm", [(one, (one.harm,)) for one in unsaid])
    yield Group("levers that do nothing: harm", [(one, (one.harm,)) for one in twins])
    yield Group("levers that do nothing: benefit", [(one, (one.benefit,)) for one in twins])


def _named(play: str, fared: Fared) -> tuple[str, ...]:
    return play, fared.lever, fared.segment, fared.metric


def _losing(plain: Sequence[tuple[str, Fared]]) -> set[tuple[str, ...]]:
    """Streams whose mean gain over seeds is below 0 by more than two standard errors: to accuse them is right."""
    gains: dict[tuple[str, ...], list[float]] = {}
    for play, fared in plain:
        if fared.gain is not None:
            gains.setdefault(_named(play, fared), []).append(fared.gain)
    return {stream for stream, found in gains.items() if _is_below(found)}


def _is_below(gains: Sequence[float]) -> bool:
    error = float(np.std(gains, ddof=1)) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
    return float(np.mean(gains)) < -2 * error


def _left_out() -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name in scenarios.names():
        for truth, why in left_out(scenarios.load(name)):
            reasons.setdefault(why, []).append(f"`{name}` ({truth.question})")
    for why, names in reasons.items():
        yield f"- {why}: {', '.join(_distinct(names))}"


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _short(segment: str) -> str:
    keys = json.loads(segment)
    return ", ".join(keys[name] for name in ("model", "input_bucket", "temperature_bucket") if name in keys)
