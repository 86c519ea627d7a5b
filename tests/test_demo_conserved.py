"""Whatever arrives and however it is served: each request ends once, its times add up, and what was held is given back."""

from __future__ import annotations

from typing import Any

import pytest
from demo_fleets import FOREVER_S, arrival, fleet, pool, scenario
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from demo.fleet import Fleet
from demo.records import Reading, Request
from demo.replicas.serving import Affinity, Serving, Speculation, Split
from demo.scenarios.layout import Disorder
from demo.traffic.arrivals import Arrival

NS = 1_000_000_000
SPECULATION = Speculation(draft_tokens=3, acceptance=(0.8, 0.5), coverage=0.7, draft_step_s=1e-4)
SPLIT = Split(prefill=1, decode=2, link_bytes_per_s=2e8, local_below_tokens=200)
SERVINGS = st.fixed_dictionaries(
    {
        "prefix_caching": st.booleans(),
        "kv_tokens": st.sampled_from([64, 400, 1600, 100_000]),
        "max_sequences": st.sampled_from([1, 3, 64]),
        "chunk_tokens": st.sampled_from([64, 512, 2048]),
        "lookup_s_per_block": st.sampled_from([0.0, 1e-5]),
        "pipeline_parallel": st.sampled_from([1, 3]),
        "speculation": st.sampled_from([None, SPECULATION]),
        "affinity": st.sampled_from([None, Affinity(), Affinity(by="tenant", cap=1.2)]),
    }
)
ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.001, 0.01, 0.3, 5.0, 400.0, 1795.0]),  # seconds after the one before
        st.sampled_from(["t", "u"]),
        st.integers(0, 4),  # whose prompt it goes on with
        st.integers(1, 600),
        st.one_of(st.integers(1, 3), st.integers(1, 400)),
    ),
    min_size=1,
    max_size=25,
)


def asked(drawn: list[tuple[float, str, int, int, int]]) -> list[Arrival]:
    """Arrivals of which some share how they begin, and some are alike."""
    at_s, found = 0.5, []
    for after_s, tenant, prompt, tokens, output in drawn:
        at_s += after_s
        full, rest = divmod(tokens, 16)
        blocks = [(prompt << 20) + place for place in range(full)] + ([-((prompt << 20) + tokens)] if rest else [])
        found.append(arrival(at_s, blocks, tokens, output, tenant=tenant, session=prompt))
    return found


def replicas(fleet: Fleet) -> list[Any]:
    return fleet._replicas


@given(SERVINGS, st.sampled_from([None, SPLIT]), st.sampled_from([None, {}, {"prefix_caching": True, "kv_tokens": 200}]), ARRIVALS)
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_every_request_ends_once_its_times_add_up_and_nothing_stays_held(
    serving: dict[str, Any], split: Split | None, control: dict[str, Any] | None, drawn: list[tuple[float, str, int, int, int]]
) -> None:
    arrivals = asked(drawn)
    served = pool(
        Serving(**serving, split=split),
        groups=2,
        lever="x" if control is not None else None,
        control=Serving(**control) if control is not None else None,
        control_every=2,
    )
    played = fleet(scenario(served, disorder=Disorder(error_share=0.1, retry_share=1.0, abort_share=0.1), scrape_s=50), arrivals)
    events = played.until(round(FOREVER_S * NS))
    ended = [event for event in events if isinstance(event, Request)]
    assert len({(request.request_key, request.attempt) for request in ended}) == len(ended) == played.requests
    assert len({request.request_key for request in ended}) == len(arrivals)
    for request in ended:
        conserved(request)
    for reading in (event for event in events if isinstance(event, Reading)):
        assert reading.kv_used_blocks >= 0
        assert reading.running + reading.waiting + reading.transferring >= 0
    for replica in replicas(played):
        assert (replica.load, replica.running, replica.transferring, len(replica.waiting), len(replica.arriving)) == (0, 0, 0, 0, 0)
        assert replica.kv.used == pytest.approx(0, abs=1e-3)
        assert replica.kv.idle <= max(replica.kv.capacity, 0) + 1e-3
        assert replica.next_s() == float("inf")


def conserved(request: Request) -> None:
    """A request's counts and times."""
    transfer_s = request.kv_transfer_s or 0.0
    times_s = (request.frontend_s, request.queue_s, request.prefill_s, transfer_s, request.decode_s, request.decode_queue_s)
    assert all(time_s >= 0 for time_s in times_s), request
    assert request.ttft_s == pytest.approx(request.frontend_s + request.queue_s + request.prefill_s + transfer_s, abs=1e-6)
    assert request.ttft_s + request.decode_s <= request.e2e_s <= request.ttft_s + request.decode_s + 0.01
    assert request.prefill_s > 0
    assert (request.decode_s > 0) == (request.output_tokens > 1)
    assert 0 <= request.cached_tokens < request.prompt_tokens
    assert request.decode_queue_s <= transfer_s + 1e-9
    assert (request.prefill_at is None) == (request.kv_transfer_s is None) == (request.kv_transfer_bytes is None)
    if request.verify_steps is not None and request.accepted_tokens is not None and request.accepted_by_position is not None:
        assert sum(request.accepted_by_position) == request.accepted_tokens <= 3 * request.verify_steps
        assert request.decode_steps + request.accepted_tokens >= request.output_tokens - 1
        assert list(request.accepted_by_position) == sorted(request.accepted_by_position, reverse=True)
        assert request.accepted_by_position[0] <= request.verify_steps <= request.decode_steps
