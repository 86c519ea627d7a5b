"""What was noted is always found again; what was not is only doubted where the filters cannot know."""

from __future__ import annotations

import numpy as np
import pytest

from collectors import seen, wire_ids
from collectors.seen import MINUTE_NS, Seen

NOW = 1_000_000 * MINUTE_NS


def hashes(count: int, seed: int) -> seen.Hashes:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def starts(count: int, minute: int = 0) -> seen.Ints:
    return np.full(count, NOW + minute * MINUTE_NS)


def test_what_was_noted_is_found_and_what_was_not_is_new() -> None:
    filters, noted, others = Seen(), hashes(200_000, 1), hashes(200_000, 2)
    filters.note(starts(len(noted)), noted)
    assert filters.maybe(starts(len(noted), minute=99), noted).all()
    assert not filters.maybe(starts(len(others)), others).any()


def test_what_was_forgotten_is_doubted_by_the_minute_in_which_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MOST_PLACES", 1 << 16)
    filters = Seen(tables=2)
    for minute in range(4):
        filters.note(starts(40_000, minute), hashes(40_000, minute))
    new = hashes(1000, 99)
    assert filters.maybe(starts(1000, minute=0), new).all()
    assert not filters.maybe(starts(1000, minute=3), new).any()
    assert filters.maybe(starts(40_000, minute=9), hashes(40_000, 3)).all()


def test_what_the_store_held_before_is_doubted_by_its_range_of_starts() -> None:
    filters = Seen(unknown=[(NOW, NOW + MINUTE_NS)])
    new = hashes(3, 1)
    times = np.array([NOW - 1, NOW + 5, NOW + MINUTE_NS + 1])
    assert filters.maybe(times, new).tolist() == [False, True, False]


def test_copies_are_marked_first_and_later_and_equal_halves_are_no_copies() -> None:
    ids = [(1, 1), (2, 1), (1, 2), (2, 1), (1, 1), (3, 3)]
    buffer = np.frombuffer(b"".join(t.to_bytes(16, "big") + s.to_bytes(8, "big") for t, s in ids), np.uint8)
    traces = np.arange(len(ids), dtype=np.int64) * 24
    of_trace, of_span = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64)
    wire_ids.hash_ids(buffer, traces, traces + 16, of_trace, of_span)
    assert [len(set(of_trace.tolist())), len(set(of_span.tolist()))] == [3, 4]
    copies = np.zeros(len(ids), np.bool_)
    wire_ids.mark_copies(buffer, traces, traces + 16, of_span, np.full(16, -1, np.int64), copies)
    assert copies.tolist() == [True, True, False, True, True, False]
