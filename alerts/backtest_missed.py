"""A label that no recommendation met and a back-test in, why it was missed, a sentence a stream and kind of verdict, out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from alerts.backtest_labels import Label
from alerts.backtest_stretches import Stretch
from alerts.backtest_told import Backtest, Judged

MOST_STREAMS, MOST_KINDS = 5, 4  # that are told of one label


def why(found: Backtest, label: Label) -> Iterator[str]:
    """What the streams that a label is about had for verdicts in its time, the longest first."""
    streams = [(one, spent) for one in found.streams if label.covers(one) and (spent := _within(one, label))]
    for one, spent in streams[:MOST_STREAMS]:
        yield from (f"{one.policy} {one.segment}: {text}" for text in _kinds(spent))
    if len(streams) > MOST_STREAMS:
        yield f"and {len(streams) - MOST_STREAMS} streams more"


def unjudged(found: Backtest, given: Sequence[Label]) -> list[Label]:
    """The labels that nothing can be said of: no stream that they are about was judged in their time."""
    return [label for label in given if not any(label.covers(one) and _within(one, label) for one in found.streams)]


def _within(stream: Judged, label: Label) -> list[Stretch]:
    return [one for one in stream.stretches if one.until > label.since and (label.until is None or one.since < label.until)]


def _kinds(spent: Sequence[Stretch]) -> Iterator[str]:
    """`insufficient in 12 of 24 blocks, few_requests: ...`; stretches reach beyond the label where its ends lie within one."""
    whole = sum(one.blocks for one in spent)
    kinds: dict[tuple[str, str], list[Stretch]] = {}
    for one in spent:
        kinds.setdefault((one.verdict, one.reason_code), []).append(one)
    told = sorted(kinds.items(), key=lambda kind: -sum(one.blocks for one in kind[1]))
    for (verdict, code), some in told[:MOST_KINDS]:
        last = some[-1]
        text = f"{verdict} in {sum(one.blocks for one in some)} of {whole} blocks, {code}: {last.reason}"
        yield f"{text}; {last.nearest}" if last.nearest else text
    if len(told) > MOST_KINDS:
        yield f"and {len(told) - MOST_KINDS} other reasons"
