"""Numbers into sentences: effects and thresholds in, the words of a reason out. Gains and coverage as percent."""

from __future__ import annotations

import functools
from datetime import UTC, datetime

from alerts.effects import Effect
from alerts.standing import Standing
from pipeline.metrics import Metric, judged

_CAPITALS = {"itl": "ITL", "tpot": "TPOT", "ttft": "TTFT", "e2e": "E2E", "kv": "KV", "gpu": "GPU"}
_NAMES = {
    "quality": "quality score",
    "queue_s": "time in the queue",
    "conditional_acceptance_at_1": "acceptance of the first draft",
    "conditional_acceptance_at_2": "acceptance of the second draft after an accepted first",
    "gpu_s_per_output_token": "GPU time per output token",
    "preemptions_per_1k_requests": "preemptions per 1,000 requests",
    "kv_usage": "KV cache in use",
    "skipped_of_attainable": "share skipped of the prompt tokens that could be",
    "attainable_skip_ceiling": "share of the prompt tokens that could be skipped",
    "kv_transfer_exposed_share": "share of the KV transfer that requests wait for",
    "queue_share": "queue's share of the request's time",
    "transfer_share": "transfer's share of the request's time",
    "prefill_share": "prefill's share of the request's time",
    "transfer_to_prefill_ratio": "transfer time over prefill time",
    "handover_to_prefill_ratio": "handover time over prefill time",
    "affinity_load_spread": "spread of load between replicas",
}
"""Metrics whose own name does not read as words."""
LEAST_MS = 0.01


@functools.lru_cache(maxsize=256)
def label(metric: str) -> str:
    """A metric's name in running text: `net_itl_s` gives `net ITL`, `ttft_s_p95` gives `TTFT p95`."""
    if metric in _NAMES:
        return _NAMES[metric]
    return " ".join(_CAPITALS.get(word, word) for word in metric.removesuffix("_s").replace("_s_p", "_p").split("_"))


def plain(name: str) -> str:
    """A lever's or an action's name in running text: `lower_degree` gives `lower degree`."""
    return name.replace("_", " ")


def value(number: float, unit: str) -> str:
    """A value with its unit, three digits: times below 1 s in ms, in hundredths at least; ratios in percent."""
    if unit in ("s", "s/token"):
        if abs(number) * 1000 < LEAST_MS:
            return "0 ms"
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


def unconfirmed(before: Standing) -> str:
    """`; recommended since ..., not confirmed since ...`: of a recommendation whose numbers cannot be read; empty where none stands."""
    if before.state != "off_recommended" or before.confirmed_at is None:
        return ""
    return f"; recommended since {utc(before.state_since)}, not confirmed since {utc(before.confirmed_at)}"


def against_threshold(metric: Metric, number: float, threshold: float) -> str:
    """One arm's value beside its threshold: `acceptance length 1.1, below the threshold of 1.25`."""
    mine, other = value(number, metric.unit), value(threshold, metric.unit)
    side = "at" if number == threshold else "above" if number > threshold else "below"
    return f"{label(metric.name)} {mine}, {'just ' if mine == other and side != 'at' else ''}{side} the threshold of {other}"


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
