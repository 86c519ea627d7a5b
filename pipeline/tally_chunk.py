"""A chunk of requests in, its sums by segment out, with the values that percentiles are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from pipeline.arithmetic import counts, expression, is_known
from pipeline.metric_row import Metric
from queries import metric_text, report_chunks, report_kernels
from queries.report_chunks import Chunk
from queries.report_parts import mark

MOST_CODES = 1 << 22  # combinations of a chunk's keys
_EVERY = np.empty(0, np.uint8)
Reals = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]  # of reals or of whole numbers


@dataclass(frozen=True, slots=True)
class Mark:
    """Values of the requests of a chunk, the bits of which requests are looked at, and the place of the first request's bit."""

    values: Numbers
    bits: npt.NDArray[np.uint8]
    offset: int


@dataclass(frozen=True, slots=True)
class Sums:
    """A chunk by segment: the segment of each request, and by segment requests, sums, counts and words.

    A segment's keys are places in `texts`, by key; `held` are the values that percentiles are made of.
    """

    texts: list[list[str | None]]
    keys: list[npt.NDArray[np.int64]]
    segments: npt.NDArray[np.int32]
    requests: Wholes
    sums: dict[str, Reals]
    counts: dict[str, Wholes]
    words: list[Wholes]
    held: dict[str, Mark]


@dataclass(frozen=True, slots=True)
class Tallied:
    """What is made of requests: `truths` are counted; of `values`, those are looked at for which a truth holds.

    Each of `summed` and of `held` is the name of what comes out, with the names of a value and a truth. A value that is a column is named
    as it is.
    """

    truths: dict[str, pl.Expr]
    values: dict[str, pl.Expr]
    summed: dict[str, tuple[str, str]]
    held: dict[str, tuple[str, str]]


def tallied(metrics: Sequence[Metric]) -> Tallied:
    """What is made of requests for metrics, named as in a report's statement."""
    asked = Tallied({}, {}, {}, {})
    for metric in metrics:
        n = mark(metric, "n")
        asked.truths[n] = counts(metric)
        if metric.known_when:
            asked.truths[mark(metric, "known")] = is_known(metric)
        if metric.kind == "quantile":
            asked.held[mark(metric, "percentiles")] = _value(asked, metric, "num"), n
            continue
        tags = ["num"] + ["den"] * (metric.denominator != "1") + ["times"] * bool(metric.times)
        asked.summed.update({mark(metric, tag): (_value(asked, metric, tag), n) for tag in tags})
        if metric.percentiles_of:
            asked.truths[mark(metric, "pct_n")] = counts(metric) & expression(metric.percentiles_of).is_not_null()
            asked.held[mark(metric, "percentiles")] = _value(asked, metric, "pct"), mark(metric, "pct_n")
    return asked


def sums(chunk: Chunk, asked: Tallied) -> Sums:
    """The sums of a chunk.

    Raises:
        TooManyKeysError: there are too many different keys.
    """
    segments, keys = _segments(chunk)
    count = len(keys[0]) if keys else 1
    found = Sums([key.texts for key in chunk.keys], keys, segments, np.bincount(segments, minlength=count), {}, {}, [], {})
    made = _made(chunk, asked)

    def numbers(name: str) -> Numbers:
        return _numbers(made[name].rechunk().to_arrow() if name in asked.values else chunk.columns[name])

    bits = {name: _bits(made[name]) for name in asked.truths}
    for name, (known, offset) in bits.items():
        found.counts[name] = np.zeros(count, np.int64) if len(known) else found.requests
        report_kernels.count_known(segments, known, offset, found.counts[name])
    for name, (value, truth) in asked.summed.items():
        found.sums[name] = np.zeros(count)
        report_kernels.add(segments, numbers(value), *bits[truth], found.sums[name])
    found.held.update({name: Mark(numbers(value), *bits[truth]) for name, (value, truth) in asked.held.items()})
    for words in chunk.words:
        found.words.append(np.zeros(count, np.int64))
        report_kernels.join_words(segments, chunk.places, words, found.words[-1])
    return found


def _value(asked: Tallied, metric: Metric, tag: str) -> str:
    """The name of a metric's arithmetic among the values: of a column alone its own, of anything else one that is made."""
    text = {"num": metric.numerator, "den": metric.denominator, "times": metric.times, "pct": metric.percentiles_of}[tag]
    if metric_text.columns(text) == {text}:
        return text
    asked.values[mark(metric, tag)] = expression(text)
    return mark(metric, tag)


def _made(chunk: Chunk, asked: Tallied) -> pl.DataFrame:
    """The truths and values of a chunk."""
    made = [one.alias(name) for name, one in {**asked.truths, **asked.values}.items()]
    return pl.DataFrame(pl.from_arrow(chunk.columns)).lazy().select(made).collect()


def _segments(chunk: Chunk) -> tuple[npt.NDArray[np.int32], list[npt.NDArray[np.int64]]]:
    """The number of each request's segment, and the place of each segment's keys among their texts."""
    sizes = [len(key.texts) for key in chunk.keys]
    total = math.prod(sizes)
    if total > MOST_CODES:
        raise report_chunks.TooManyKeysError
    codes = np.zeros(chunk.columns.num_rows, np.int32)
    for key in chunk.keys:
        key.extend(codes)
    found = np.empty(min(total, len(codes)), np.int32)
    count = report_kernels.number(codes, np.full(total, -1, np.int32), found)
    return codes, list(np.unravel_index(found[:count], sizes)) if sizes else []


def _bits(truth: pl.Series) -> tuple[npt.NDArray[np.uint8], int]:
    """The bits of a truth, and the place of the first; none where it holds of every request."""
    if truth.all():
        return _EVERY, 0
    array = truth.rechunk().to_arrow()
    return np.frombuffer(array.buffers()[1], np.uint8), array.offset


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, copied only where it is in several."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _numbers(column: pa.Array | pa.ChunkedArray) -> Numbers:
    """The numbers of a column, whatever stands where there is none."""
    array = _whole(column) if isinstance(column, pa.ChunkedArray) else column
    array = array if array.type in (pa.int64(), pa.float64()) else array.cast(pa.float64(), safe=False)
    if array.buffers()[1] is None:
        return np.zeros(len(array))
    kind = np.int64 if pa.types.is_integer(array.type) else np.float64
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]
