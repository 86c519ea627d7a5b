"""Quality scores of a setting and of the original in, whether the setting is worse than repeats of the original differ out: pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from scipy.special import stdtrit

from alerts import wording
from alerts.chain import QualityGate
from alerts.effects import Effect

METRIC, BASIS, ORIGINAL = "quality", "evaluations", "original"
LEAST_REPEATS = 5
ENOUGH_TREATED = 3  # one repeat alone is past the noise by chance in one run of a hundred, three in one of four hundred
Status = Literal["ok", "breach", "aged", "insufficient", "not_measured"]
WORST_FIRST: tuple[Status, ...] = ("breach", "insufficient", "aged", "not_measured", "ok")


class Reading(NamedTuple):
    """What a quality gate says: a status, a sentence in numbers, and the effect that conditions read; None where nothing was measured.

    Only with `ok` and `breach` the effect has an interval: the gain, a ratio of the original's score, and the noise on either side of it.
    """

    status: Status
    said: str
    effect: Effect | None = None

    @property
    def is_doubted(self) -> bool:
        """Whether there are scores that say less than the gate asks for: too few of them, or too old ones."""
        return self.status in ("aged", "insufficient")


@dataclass(slots=True)
class Scores:
    """Scores of one setting in one suite, oldest first, the runs that they are of, and how far repeats of a run lie from its mean."""

    times: list[datetime] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    runs: list[str | None] = field(default_factory=list)
    _spread: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])
    _run: tuple[int, float] = (0, 0.0)

    def add(self, evaluated_at: datetime, value: float, run: str | None) -> None:
        """Appends one; they come by time."""
        n, mean = self._run if self.runs and self.runs[-1] == run else (0, 0.0)
        squares, freedom = self._spread[-1]
        self._spread.append((squares + (value - mean) ** 2 * n / (n + 1), freedom + 1) if n else (squares, freedom))
        self._run = n + 1, mean + (value - mean) / (n + 1)
        self.times.append(evaluated_at)
        self.values.append(value)
        self.runs.append(run)

    def variance(self, since: datetime, until: datetime) -> tuple[float, int]:
        """The variance of repeats about the mean of their run, of all made after a moment and by another, and its degrees of freedom."""
        first, last = (self._spread[bisect_right(self.times, moment)] for moment in (since, until))
        freedom = last[1] - first[1]
        return ((last[0] - first[0]) / freedom if freedom else 0.0), freedom

    def newest(self, until: datetime, at_least: int) -> tuple[list[float], datetime | None]:
        """The scores of the newest run by a moment, and of as many runs before it as give so many; and when the newest was made."""
        end = bisect_right(self.times, until)
        start = end
        while start and (end - start < at_least or self._goes_on(start)):
            start -= 1
        return self.values[start:end], self.times[end - 1] if end else None

    def _goes_on(self, place: int) -> bool:
        return self.runs[place] is not None and self.runs[place - 1] == self.runs[place]


@dataclass(frozen=True, slots=True)
class Suite:
    """One suite of one model at one temperature: the scores of each setting, and which way is better."""

    name: str
    kind: str
    better: str
    settings: dict[str, Scores] = field(default_factory=dict)
    original: Scores = field(default_factory=Scores)

    def is_of(self, gate: QualityGate) -> bool:
        """Whether a gate asks for it: by its name, or by its kind."""
        return self.kind == gate.kind and gate.suite in (self.name, self.kind)


def noise_of(original: Scores, newest: Sequence[float], since: datetime, until: datetime) -> float:
    """The 95 % range of differences between two repeats, in the scores' unit, from their variance by Student's t.

    Few repeats are alike by chance, so all runs of the period tell; where runs are of one repeat each, the newest scores do.
    """
    variance, freedom = original.variance(since, until)
    if freedom < LEAST_REPEATS - 1:
        mean, freedom = _mean(newest), len(newest) - 1
        variance = sum((score - mean) ** 2 for score in newest) / freedom
    return float(stdtrit(freedom, 0.975) * math.sqrt(2.0 * variance))


def compare(suite: Suite, setting: str, gate: QualityGate, until: datetime) -> Reading:
    """A setting's newest run against the original's newest repeats, as of a moment: means, and the noise between repeats.

    Runs of one or two repeats, such as one that is not finished, are taken together with those before. A mean of repeats varies
    by less than the difference of two of them: what is past the noise is past it by far.
    """
    needed, oldest = max(LEAST_REPEATS, gate.repeats), until - timedelta(days=gate.max_age_days)
    treated, made_at = suite.settings[setting].newest(until, ENOUGH_TREATED)
    original, original_at = suite.original.newest(until, needed)
    if not treated or made_at is None:
        return Reading("not_measured", f"quality not measured: no score of {setting} in {suite.name} yet")
    if len(original) < needed or original_at is None:
        said = f"quality in {suite.name}: {len(original)} repeats of the original, {needed} are needed"
        return Reading("insufficient", said, _effect(treated, original, made_at, until, said))
    if min(made_at, original_at) <= oldest:
        which = f"{setting} was scored" if made_at <= original_at else "the original was scored"
        said = (
            f"quality in {suite.name}: {which} last at {wording.utc(min(made_at, original_at))}, more than {gate.max_age_days:g} days ago"
        )
        return Reading("aged", said, _effect(treated, original, made_at, until, said))
    noise = noise_of(suite.original, original, oldest, until)
    return _told(suite, setting, treated, original, noise, made_at, until)


def worst(readings: Sequence[Reading]) -> Reading:
    """The reading that decides: a breach before doubts before what is well; of alike ones that with the lowest gain. One at least."""
    return min(readings, key=_rank)


def _rank(reading: Reading) -> tuple[int, float]:
    gain = reading.effect.gain if reading.effect else None
    return WORST_FIRST.index(reading.status), 0.0 if gain is None else gain


def _told(
    suite: Suite, setting: str, treated: Sequence[float], original: Sequence[float], noise: float, made_at: datetime, until: datetime
) -> Reading:
    mine, theirs = _mean(treated), _mean(original)
    worse_by = (mine - theirs) if suite.better == "lower" else (theirs - mine)
    said = (
        f"quality in {suite.name}: {mine:.4g} with {setting} ({_runs(len(treated))}) against {theirs:.4g} of the original "
        f"({_runs(len(original))}), {_change(worse_by)} where repeats of it differ by up to {noise:.2g}"
    )
    if not theirs or (not noise and worse_by > 0):
        said += "; the original scores 0, and no ratio is of that" if not theirs else ": repeats that are all alike show no noise"
        return Reading("insufficient", said, _effect(treated, original, made_at, until, said))
    status: Status = "breach" if worse_by > noise else "ok"
    effect = _effect(treated, original, made_at, until, said)
    gain, width = -worse_by / abs(theirs), noise / abs(theirs)
    says = "loses" if status == "breach" else "pays"
    return Reading(status, said, effect._replace(gain=gain, gain_low=gain - width, gain_high=gain + width, says=says))


def _effect(treated: Sequence[float], original: Sequence[float], made_at: datetime, until: datetime, said: str) -> Effect:
    return Effect(
        metric=METRIC,
        since=min(made_at, until),
        until=until,
        blocks=len(treated),
        n_a=len(treated),
        n_b=len(original),
        value_a=_mean(treated),
        value_b=_mean(original) if original else None,
        gain=None,
        gain_low=None,
        gain_high=None,
        basis=BASIS,
        coverage=1.0,
        note=said,
    )


def _mean(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores)


def _change(worse_by: float) -> str:
    return f"{'worse' if worse_by > 0 else 'better'} by {abs(worse_by):.2g}" if worse_by else "alike"


def _runs(count: int) -> str:
    return "1 repeat" if count == 1 else f"{count} repeats"
