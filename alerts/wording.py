"""Numbers into sentences: effects and thresholds in, the words of a reason out. Gains and coverage as percent."""

from __future__ import annotations

import functools
from datetime import UTC, datetime

from alerts.effects import Effect
from alerts.standing import Standing
from pipeline.metrics import Metric, judged

_CAPITALS = {"itl": "ITL", "tpot": "TPOT", "ttft": "TTFT", "e2e": "E2E", "kv": "KV"}


@functools.lru_cache(maxsize=256)
def label(metric: str) -> str:
    """A metric's name in running text: `net_itl_s` gives `net ITL`, `ttft_s_p95` gives `TTFT p95`."""
    return " ".join(_CAPITALS.get(word, word) for word in metric.removesuffix("_s").replace("_s_p", "_p").split("_"))


def value(number: float, unit: str) -> str:
    """A value with its unit, three digits: times below 1 s in ms, ratios in percent."""
    if unit in ("s", "s/token"):
        return f"{_digits(number * 1000)} ms" if abs(number) < 1 else f"{_digits(number)} s"
    return f"{_digits(number * 100)} %" if unit == "ratio" else _digits(number)


def percent(ratio: float) -> str:
    """A gain in percent with its sign, without the percent mark."""
    return f"{100 * ratio:+.0f}" if abs(ratio) >= 0.01 else f"{100 * ratio:+.1f}"


def blocks(number: int) -> str:
    """`1 block`, `41 blocks`."""
    return f"{number} block" if number == 1 else f"{number} blocks"


def utc(moment: datetime) -> str:
    """A time as ISO 8601 with Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def compared(effect: Effect) -> str:
    """Both arms, the gain with its interval and the blocks: `net ITL 31 ms against 27 ms in control, gain -15 % (...)`."""
    text, is_control = label(effect.metric), effect.basis == "control"
    if effect.value_a is not None and effect.value_b is not None:
        unit = judged()[effect.metric].unit
        text += f" {value(effect.value_a, unit)} against {value(effect.value_b, unit)} {'in control' if is_control else 'without it'},"
    counted = f"{text}{_gain(effect)}, {blocks(effect.blocks)}{_by_replicas(effect)}"
    return counted if is_control else f"{counted}; {basis(effect)}"


def basis(effect: Effect) -> str:
    """What stands in the place of a control arm: `basis off_steps (good: against requests ...)`."""
    return f"basis {effect.basis}" + (f" ({effect.note})" if effect.note else "")


def since_turn(effect: Effect) -> str:
    """What is known of a lever that may have become worse: `gain -24 % since it turned, 9 blocks ago`; empty where it has not."""
    if not effect.turned_blocks or effect.turned_gain is None:
        return ""
    return f"gain {percent(effect.turned_gain)} % since it turned, {blocks(effect.turned_blocks)} ago"


NEWEST_SHOW = "the newest blocks show it, of which this window has few"
"""Said of a gain that is evident, where the window of two hours still holds what was before."""


def unconfirmed(before: Standing) -> str:
    """`; recommended since ..., not confirmed since ...`: of a recommendation whose numbers cannot be read; empty where none stands."""
    if before.state != "off_recommended" or before.confirmed_at is None:
        return ""
    return f"; recommended since {utc(before.state_since)}, not confirmed since {utc(before.confirmed_at)}"


def against_threshold(metric: Metric, number: float, threshold: float) -> str:
    """One arm's value beside its threshold: `acceptance length 1.1 against a threshold of 1.25`."""
    return f"{label(metric.name)} {value(number, metric.unit)} against a threshold of {value(threshold, metric.unit)}"


def low_coverage(effect: Effect, needed: float) -> str:
    """`net ITL known for 62 % of requests, 90 % are needed`."""
    return f"{label(effect.metric)} known for {100 * effect.coverage:.0f} % of requests, {100 * needed:.0f} % are needed"


def trapped(effect: Effect, most: float) -> str:
    """`skipped token ratio: 34 % of requests fell into the trap hits_of_preempted (vllm#25780), 10 % may`."""
    upstream = f" ({effect.upstream})" if effect.upstream else ""
    share = f"{100 * (effect.trapped_share or 0.0):.0f} % of requests fell into the trap {effect.trap}{upstream}"
    return f"{label(effect.metric)}: {share}, {100 * most:.0f} % may"


def few_requests(effect: Effect, needed: int, *, compared: bool) -> str:
    """`net ITL: 40 requests treated and 12 in control, 100 in each are needed`."""
    if compared:
        return f"{label(effect.metric)}: {effect.n_a} requests treated and {effect.n_b} in control, {needed} in each are needed"
    return f"{label(effect.metric)}: {effect.n_a} requests, {needed} are needed"


def no_interval(effect: Effect) -> str:
    """`net ITL: no interval yet from 6 blocks (the note)`."""
    return f"{label(effect.metric)}: no interval yet from {blocks(effect.blocks)}" + (f" ({effect.note})" if effect.note else "")


def not_compared(effect: Effect) -> str:
    """`TTFT not compared with control (the note)`; `...; gain +20 % (12..28 %), basis spill (the note)` where there is something else."""
    text = f"{label(effect.metric)} not compared with control"
    if effect.gain is not None:
        return f"{text};{_gain(effect)}, {basis(effect)}"
    return f"{text} ({effect.note or 'no control traffic'})"


def _gain(effect: Effect) -> str:
    if effect.gain is None:
        return ""
    ends = (effect.gain_low, effect.gain_high)
    interval = "" if None in ends else f" ({'..'.join(percent(end) for end in ends if end is not None)} %)"
    return f" gain {percent(effect.gain)} %{interval}"


def _by_replicas(effect: Effect) -> str:
    """What of a gain the replicas may make by themselves: `; fixed control replicas may make 4.4 % of it by themselves`."""
    return f"; fixed control replicas may make {100 * effect.margin:.1f} % of it by themselves" if effect.margin else ""


def _digits(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"
