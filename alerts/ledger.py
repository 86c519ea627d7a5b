"""Both arms' sums by block in, the budget ledger of a lever out: what was saved, which budget grew, and the rest that nothing explains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from alerts import block_sums, wording
from alerts.block_sums import LEAST_REQUESTS, NOTHING, BlockSums
from alerts.chain import Budget, Phase, Policy
from alerts.settings import BLOCK
from pipeline.metrics import by_name
from queries import files
from queries.store import Store

WINDOW_BLOCKS = 24
NO_SUMS = BlockSums(())
WHOLE, SHIPPED, COST = "e2e_s", "transfer_share", "gpu_s_per_output_token"
PHASES: tuple[tuple[Phase, str, str, Budget | None], ...] = (
    ("queue", "queue_s", "queue_s", None),
    ("prefill", "prefill_s", "prefill_s", "compute"),
    ("transfer", "kv_transfer_s", SHIPPED, "communication"),
    ("decode", "decode_s", "decode_share", "memory_bandwidth"),
)
"""Each phase with what it is of a request, whose sums hold it, and the budget that it mostly spends; a queue waits for any of them."""


class Entry(NamedTuple):
    """One row: means over treated's requests, and what control's level gives the same; None where it is not known.

    Of a phase, of the whole and of the rest they are seconds a request and `share` is the change over control's whole time, so that shares
    add up; of other metrics it is the change over control's own value.
    """

    budget: str | None
    phase: str | None
    metric: str
    treated: float | None
    control: float | None
    change: float | None
    share: float | None


class Ledger(NamedTuple):
    """The rows of one lever's segment over some blocks, and what they say in a sentence."""

    rows: tuple[Entry, ...]
    said: str

    def plain(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {"rows": [row._asdict() for row in self.rows], "said": self.said}


def read(store: Store, policy: Policy, segment: str, until: datetime) -> Ledger:
    """The ledger of a policy's lever in a segment, over the decision window of blocks that ends at a moment."""
    return read_all(store, [(policy, segment, until)])[0]


def segments(store: Store, lever: str, until: datetime) -> list[str]:
    """The segments of a lever that a ledger can be told of, over the decision window of blocks that ends at a moment."""
    asked = {"lever": lever, "since": until - WINDOW_BLOCKS * BLOCK, "until": until}
    return [str(row["segment"]) for row in store.rows(files.question("ledger_segments"), asked)]


def read_all(store: Store, asked: Sequence[tuple[Policy, str, datetime]]) -> list[Ledger]:
    """The same of several, in their order: what is of one policy and moment is read together."""
    together: dict[tuple[str, datetime], tuple[Policy, list[str]]] = {}
    for policy, segment, until in asked:
        together.setdefault((policy.name, until), (policy, []))[1].append(segment)
    found = {}
    for (name, until), (policy, segments) in together.items():
        since = until - WINDOW_BLOCKS * BLOCK
        found[name, until] = block_sums.read_arms(store, policy.lever, segments, _metrics(policy), since, until)
    return [ledger(policy, found[policy.name, until].get(segment, NO_SUMS)) for policy, segment, until in asked]


def _metrics(policy: Policy) -> list[str]:
    pressed = block_sums.in_cells(policy.receiving_budget.metric)
    return sorted({"requests", WHOLE, COST, *(source for _, _, source, _ in PHASES), *([pressed] if pressed else [])})


def ledger(policy: Policy, sums: BlockSums) -> Ledger:
    """What a lever's arms spent, block against the same block: control's level weighs as treated's requests do."""
    weights = _weights(sums)
    whole = _entry(None, None, WHOLE, *_means(sums, WHOLE, weights))
    if whole.treated is None or not whole.control:
        return Ledger((), f"no budget ledger: no block has {LEAST_REQUESTS} requests with a whole time in each arm")
    phases = [_shared(_phase(policy, sums, weights, *phase), whole.control) for phase in PHASES]
    known = [row for row in phases if row.change is not None]
    explained = sum(row.change or 0.0 for row in known)
    rest = (whole.change or 0.0) - explained
    rest_row = Entry(None, None, "unexplained", None, None, rest, rest / whole.control)
    others = [row for row in _others(policy, sums) if row.change is not None]
    whole = _shared(whole, whole.control)
    return Ledger((*known, rest_row, whole, *others), _said(policy, known, rest_row, whole, others))


def _weights(sums: BlockSums) -> dict[datetime, float]:
    """Treated's requests in each block in which both arms have enough."""
    control = sums.blocks("control", WHOLE)
    return {
        start: one.n
        for start, one in sums.blocks("treated", WHOLE).items()
        if one.n >= LEAST_REQUESTS and control.get(start, NOTHING).n >= LEAST_REQUESTS
    }


def _means(sums: BlockSums, metric: str, weights: dict[datetime, float], over: str = "") -> tuple[float | None, float | None]:
    """Mean seconds a request of treated, and of control weighed like it; of those that have the metric, or of all that `over` counts."""
    total = {"treated": 0.0, "control": 0.0}
    counted = 0.0
    for start, weight in weights.items():
        levels = {}
        for arm in total:
            one, among = sums.blocks(arm, metric).get(start, NOTHING), sums.blocks(arm, over or metric).get(start, NOTHING)
            if among.n > 0:
                levels[arm] = one.num / among.n
        if len(levels) == len(total):
            counted += weight
            for arm, level in levels.items():
                total[arm] += weight * level
    return (total["treated"] / counted, total["control"] / counted) if counted else (None, None)


def _phase(
    policy: Policy, sums: BlockSums, weights: dict[datetime, float], phase: Phase, metric: str, source: str, budget: Budget | None
) -> Entry:
    """Of a phase. A request that ships nothing has no transfer: that phase is over all requests, where any arm has it."""
    if policy.measured_bottleneck.phase == phase:
        budget = policy.measured_bottleneck.resource
    if source == SHIPPED and not any(sums.blocks(arm, source) for arm in ("treated", "control")):
        return Entry(budget, phase, metric, None, None, None, None)
    return _entry(budget, phase, metric, *_means(sums, source, weights, "requests" if source == SHIPPED else ""))


def _others(policy: Policy, sums: BlockSums) -> Iterator[Entry]:
    """The metric that shows the receiving budget's pressure, and what a token costs."""
    pressed = block_sums.in_cells(policy.receiving_budget.metric)
    for budget, metric in ((policy.receiving_budget.budget, pressed), (None, COST)):
        if metric is not None:
            row = _entry(budget, None, metric, *_levels(sums, metric))
            yield row._replace(share=row.change / row.control if row.change is not None and row.control else None)


def _levels(sums: BlockSums, metric: str) -> tuple[float | None, float | None]:
    """Treated's value of a metric, and control's in the same blocks, weighed by treated's denominators."""
    control = sums.blocks("control", metric)
    got = expected = den = 0.0
    for start, one in sums.blocks("treated", metric).items():
        other = control.get(start, NOTHING)
        if other.level is not None and min(one.n, other.n) >= LEAST_REQUESTS:
            got, expected, den = got + one.num, expected + one.den * other.level, den + one.den
    return (got / den, expected / den) if den else (None, None)


def _entry(budget: str | None, phase: str | None, metric: str, treated: float | None, control: float | None) -> Entry:
    change = treated - control if treated is not None and control is not None else None
    return Entry(budget, phase, metric, treated, control, change, None)


def _shared(row: Entry, whole_s: float) -> Entry:
    return row._replace(share=row.change / whole_s if row.change is not None else None)


def _said(policy: Policy, phases: Sequence[Entry], rest: Entry, whole: Entry, others: Sequence[Entry]) -> str:
    """`of 2.4 s a request treated takes 410 ms less (-17 %): decode -510 ms, prefill +80 ms; +20 ms unexplained; compute, ...`."""
    of, change = whole.control or 0.0, whole.change or 0.0
    much = f"{wording.value(abs(change), 's')} {'less' if change < 0 else 'more'} ({wording.percent(whole.share or 0.0)} %)"
    moved = sorted((row for row in phases if row.change), key=lambda row: row.change or 0.0)
    parts = [
        ", ".join(f"{row.phase} {_seconds(row.change or 0.0)}" for row in moved) or "no phase is known",
        f"{_seconds(rest.change or 0.0)} unexplained",
    ]
    said = [f"of {wording.value(of, 's')} a request treated takes {much}: {'; '.join(parts)}"]
    for row in others:
        unit = by_name()[row.metric].unit
        name = "GPU time per output token" if row.metric == COST else wording.label(row.metric)
        told = f"{name} {wording.value(row.treated or 0.0, unit)} against {wording.value(row.control or 0.0, unit)}"
        told += f" ({wording.percent(row.share)} %)" if row.share is not None else ""
        said.append(f"{row.budget}, which {policy.lever} presses on: {told}" if row.budget else told)
    return "; ".join(said)


def _seconds(change: float) -> str:
    if abs(change) * 1000 < wording.LEAST_MS:
        return "0 ms"
    return f"{'+' if change > 0 else '-'}{wording.value(abs(change), 's')}"
