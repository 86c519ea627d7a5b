"""What decided: an effect and the limit that it is past in, a clause that says by what, and since when, out; evidence or an interval."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from alerts import wording
from alerts.effects import ALPHA, Effect
from pipeline.metrics import Metric

BLOCK_S = 300


def by(effect: Effect, lever: str, limit: float, *, above: bool) -> str:
    """What decided of a gain that is past a limit, then the window that describes it: between both it is said which is which.

    The limit is the policy's: what control's replicas may make by themselves is taken off before, and told with the numbers.
    """
    span = f"{clock(effect.since, effect.until)} to {clock(effect.until, effect.until)} UTC"
    is_evident = effect.is_evident(effect.beyond(limit, above=above), above=above)
    if is_evident:
        aside = f"as a description only, {span} as a whole" if _covers(effect, limit, above=above) else span
        return f"{_past(effect, limit, above=above)}: {_evident(effect, lever, limit, above=above)}; {aside}: {wording.compared(effect)}"
    outermost = ", and evidence says the same" if effect.is_evident_at_outermost(above=above) else ""
    clause = f"{_past(effect, limit, above=above)}: the whole interval over {span} is past that{outermost}"
    return f"{clause}; {wording.compared(effect)}"


def by_premise(effect: Effect, metric: Metric, threshold: float, *, above: bool) -> str:
    """What decided of a premise whose evidence says that it is lost: `acceptance length is evidently below the threshold of 1.25; ...`."""
    side, own = "above" if above else "below", effect.own
    clause = f"{wording.label(metric.name)} is evidently {side} the threshold of {wording.value(threshold, metric.unit)}"
    span = f"{clock(effect.since, effect.until)} to {clock(effect.until, effect.until)} UTC"
    return clause if own is None else f"{clause}; {span} as a whole: {wording.value(own, metric.unit)}"


def turned_at(effect: Effect) -> datetime | None:
    """Since when the lever may be worse, as its evidence has it; None where it is not."""
    if not effect.turned_blocks or effect.turned_gain is None:
        return None
    return effect.until - timedelta(seconds=BLOCK_S * effect.turned_blocks * (effect.blocks_together or 1))


def held(number: int, until: datetime) -> str:
    """For how long a trigger has held: `held for 3 blocks of 5 min, up to 07:30 UTC`."""
    return f"held for {number} blocks of 5 min, up to {clock(until, until)} UTC" if number > 1 else ""


def clock(moment: datetime, beside: datetime) -> str:
    """A time of day in UTC, `06:15`; with its date where that is not that of the time beside it."""
    moment, beside = (one.astimezone(UTC) for one in (moment, beside))
    return f"{moment:%H:%M}" if moment.date() == beside.date() else f"{moment.day} {moment:%b %H:%M}"


def _past(effect: Effect, limit: float, *, above: bool) -> str:
    """`net ITL is more than 2 % worse than control's`."""
    side = "better" if above else "worse"
    by = abs(limit)
    if (limit < 0) == above and limit:  # a loss may be smaller than some percent, a gain too
        return f"{wording.label(effect.metric)} is less than {100 * by:.3g} % {'worse' if above else 'better'} than {_other(effect)}"
    much = f"more than {100 * by:.3g} % " if by else ""
    return f"{wording.label(effect.metric)} is {much}{side} than {_other(effect)}"


def _other(effect: Effect) -> str:
    return "control's" if effect.basis == "control" else "without the lever"


def _evident(effect: Effect, lever: str, limit: float, *, above: bool) -> str:
    """`evident since 06:15 UTC (gain -15 % since then), a false call on at most 5 % of days in all 12 segments of speculation`."""
    at, since = turned_at(effect), ""
    if not above and at is not None and effect.turned_gain is not None and effect.turned_gain < limit:  # else it turned again later
        since = f" since {clock(at, effect.until)} UTC (gain {wording.percent(effect.turned_gain)} % since then)"
    segments = f" in all {effect.tests} segments of {wording.plain(lever)}" if (effect.tests or 1) > 1 else ""
    return f"evident{since}, a false call on at most {100 * ALPHA:.0f} % of days{segments}"


def _covers(effect: Effect, limit: float, *, above: bool) -> bool:
    """Whether the interval of the window, which still holds what was before, does not say it by itself."""
    end = effect.gain_low if above else effect.gain_high
    return end is None or not (end > limit if above else end < limit)
