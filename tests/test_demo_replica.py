"""A replica on its own: its queue, its chunks, its cache when answers outgrow it, and what a change of settings leaves as it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from demo_fleets import arrival, unlike
from hypothesis import given, settings
from hypothesis import strategies as st

from demo.ids import IdSource
from demo.records import Deployment
from demo.replicas.drafting import Drafted
from demo.replicas.hardware import HARDWARE, NETWORKS
from demo.replicas.replica import Replica
from demo.replicas.roofline import Roofline, Work
from demo.replicas.sequence import Sequence as Served
from demo.replicas.serving import Serving, Speculation
from demo.traffic.arrivals import Arrival

IDS = IdSource(1)


def deployment(engine: str = "vllm") -> Deployment:
    return Deployment(engine, "m", "h100", "tp1", 1, "r-0", kv_block_tokens=16)


def roofline(serving: Serving) -> Roofline:
    return Roofline(NETWORKS["dense-8b"], HARDWARE["h100"], serving)


def replica(engine: str = "vllm", **serving: Any) -> Replica:
    """One that has come to moment 0."""
    said = Serving(**serving)
    began = Replica(deployment(engine), roofline(said), said)
    began.advance(0.0)
    return began


def served(asked: Arrival, drafted: Drafted | None = None, draft_tokens: int = 0) -> Served:
    sequence = Served(asked, IDS.drawn(), 1, "ok", drafted, draft_tokens)
    sequence.queued_s = asked.at_s
    return sequence


def goes_on(replica: Replica, until_s: float = math.inf) -> Iterator[Served]:
    """Those that end, as they do."""
    while (next_s := replica.next_s()) < until_s:
        yield from (one.sequence for one in replica.advance(next_s))
    if until_s < math.inf:
        yield from (one.sequence for one in replica.advance(until_s))


def plays(replica: Replica, arrivals: Sequence[Arrival]) -> tuple[list[Served], dict[Served, float]]:
    """What each arrival became, and when each ended."""
    asked, ended_s = [], {}
    for one in arrivals:
        for sequence in goes_on(replica, one.at_s):
            ended_s[sequence] = replica.at_s
        asked.append(served(one))
        replica.enqueue(asked[-1])
    for sequence in goes_on(replica):
        ended_s[sequence] = replica.at_s
    return asked, ended_s


def test_a_lone_request_is_read_at_once_and_decoded_a_token_an_iteration() -> None:
    alone = replica(step_overhead_s=0.001)
    [sequence], ended_s = plays(alone, [unlike(1.0, 1, 100, 41)])
    costs = roofline(Serving(step_overhead_s=0.001))
    assert sequence.started_s == 1.0
    assert sequence.prefilled_s - 1.0 == pytest.approx(costs.iteration_s(Work(0, 0, 50, 100, 50)))
    by_hand = sum(costs.iteration_s(Work(1, 1, 100 + token)) for token in range(40))
    assert ended_s[sequence] - sequence.first_token_s == pytest.approx(by_hand, rel=1e-3)


def test_contexts_that_grow_slow_a_step_down_though_nothing_happens_meanwhile() -> None:
    alone = replica(step_overhead_s=0)
    [sequence], ended_s = plays(alone, [unlike(0.0, 1, 16, 100_001)])
    costs = roofline(Serving(step_overhead_s=0))
    by_hand = sum(costs.iteration_s(Work(1, 1, 16 + token)) for token in range(100_000))
    assert ended_s[sequence] - sequence.first_token_s == pytest.approx(by_hand, rel=0.04)


def test_an_answer_of_one_token_ends_when_its_prompt_is_read() -> None:
    alone = replica()
    [sequence], ended_s = plays(alone, [unlike(0.5, 1, 100, 1)])
    assert ended_s[sequence] == sequence.first_token_s == sequence.prefilled_s > 0.5
    assert (alone.output_tokens, alone.load, alone.kv.used) == (1, 0, 0)


def test_a_long_prompt_takes_as_many_iterations_as_chunks_beside_those_that_decode() -> None:
    busy = replica(chunk_tokens=512)
    first, long = served(unlike(0.0, 1, 16, 1000)), served(unlike(0.0, 2, 5120, 2))
    busy.enqueue(first)
    list(goes_on(busy, 0.2))
    before = busy.iterations
    busy.enqueue(long)
    while not long.prefilled_s:
        busy.advance(busy.next_s())
    assert busy.iterations - before == pytest.approx(10)
    by_hand = (busy.roofline.iteration_s(Work(1, 1, 16 + before + 512 * (chunk + 0.5), 512, 512 * (chunk + 0.5))) for chunk in range(10))
    assert long.prefilled_s - long.started_s == pytest.approx(sum(by_hand), rel=0.01)


def test_stages_of_a_pipeline_read_chunks_side_by_side_once_they_are_full() -> None:
    """Ten chunks pass three stages in twelve stage times, and an iteration is three of them; one chunk takes as long as on one stage."""
    for chunks, iterations in ((10, 4), (1, 1)):
        piped = replica(chunk_tokens=512, pipeline_parallel=3)
        plays(piped, [unlike(0.0, 1, 512 * chunks, 1)])
        assert piped.iterations == pytest.approx(iterations)


def test_ranks_talk_for_the_part_of_the_busy_time_that_the_roofline_says() -> None:
    talking, silent = replica(tensor_parallel=8), replica()
    for each in (talking, silent):
        plays(each, [unlike(0.0, 1, 1000, 101)])
    talk = talking.roofline.talk
    assert talking.iterations == pytest.approx(101)
    assert talking.collective_tokens == pytest.approx(1100)
    assert talking.collective_s == pytest.approx(101 * talk.fixed_s + 1100 * talk.token_s)
    assert 0.05 < talking.collective_s / talking.busy_s < 0.5
    assert silent.collective_s == 0 < silent.busy_s


def test_short_prompts_that_wait_are_read_in_one_chunk_together_as_far_as_they_fit() -> None:
    busy = replica(chunk_tokens=512)
    sequences = [served(unlike(0.0, number, 200, 5)) for number in range(6)]
    for sequence in sequences:
        busy.enqueue(sequence)
    list(goes_on(busy))
    assert [sequence.queue_depth for sequence in sequences] == [0, 0, 1, 2, 3, 4]
    moments = [sequence.started_s for sequence in sequences]
    assert moments[0] == 0 < moments[1] == moments[2] < moments[3] == moments[4] < moments[5]


def test_no_more_sequences_run_than_are_allowed_and_the_others_wait_in_order() -> None:
    narrow = replica(max_sequences=2)
    sequences, ended_s = plays(narrow, [unlike(0.0, number, 64, 20) for number in range(5)])
    assert sorted(ended_s.values()) == [ended_s[sequence] for sequence in sequences]
    assert all(sequence.batch < 2 for sequence in sequences)
    assert sequences[2].started_s >= ended_s[sequences[0]]


def test_a_prompt_that_is_there_as_a_whole_has_its_last_block_or_token_computed_anew() -> None:
    for engine, cached in (("vllm", 112), ("dynamo", 112), ("sglang", 127), ("trtllm", 127)):
        again = replica(engine)
        [_, second], _ = plays(again, [arrival(0.0, range(8), output=2), arrival(9.0, range(8), output=2)])
        assert second.cached_tokens == cached
    longer = replica()
    [_, second], _ = plays(longer, [arrival(0.0, range(8), output=2), arrival(9.0, range(9), output=2)])
    assert second.cached_tokens == 128


def test_two_alike_that_run_at_the_same_time_share_their_blocks_and_both_end() -> None:
    both = replica()
    sequences = [served(arrival(0.0, range(64), output=50)) for _ in range(2)]
    for sequence in sequences:
        both.enqueue(sequence)
    list(goes_on(both, 0.05))
    assert both.running == 2
    assert both.kv.used < 64 + 2 * 50 / 16
    assert len(list(goes_on(both))) == 2
    assert (both.kv.used, both.kv.idle) == (0, 64)


def test_a_request_longer_than_the_cache_is_served_alone() -> None:
    small = replica(kv_tokens=320)
    long, short = unlike(0.0, 1, 1600, 200), unlike(0.0, 2, 32, 5)
    sequences, ended_s = plays(small, [short, long, short._replace(blocks=(9, 10))])
    assert sequences[1].started_s >= ended_s[sequences[0]]
    assert sequences[2].started_s >= ended_s[sequences[1]]
    assert small.preemptions == 0


def test_where_answers_outgrow_the_cache_the_last_one_gives_way_and_is_read_anew_with_its_answer() -> None:
    small = replica(kv_tokens=1600, prefix_caching=False)
    sequences, ended_s = plays(small, [unlike(0.0, number, 320, 600) for number in range(3)])
    assert [sequence.preemptions > 0 for sequence in sequences] == [False, True, True]
    assert ended_s[sequences[0]] < ended_s[sequences[1]]
    assert small.preemptions == sum(sequence.preemptions for sequence in sequences)
    assert small.output_tokens == 1800
    assert small.prompt_tokens == 960  # begun once, however often they are read
    assert small.kv.used == pytest.approx(0, abs=1e-6)


def test_one_that_gave_way_keeps_its_first_token_and_its_tokens() -> None:
    small = replica(kv_tokens=1600)
    sequences, ended_s = plays(small, [unlike(0.0, number, 320, 600) for number in range(3)])
    kept = max(sequences, key=lambda sequence: sequence.preemptions)
    assert kept.preemptions
    assert kept.first_token_s == kept.prefilled_s < ended_s[sequences[0]] < ended_s[kept]
    assert kept.generated < 599  # what it had when it gave way the last time


@given(
    st.sampled_from([64, 200, 640, 5000]),
    st.booleans(),
    st.lists(st.tuples(st.floats(0, 0.5), st.integers(0, 3), st.integers(1, 40), st.integers(1, 300)), min_size=1, max_size=20),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_more_than_the_cache_holds_is_used_by_a_single_sequence_alone(
    kv_tokens: int, reuse: bool, asked: list[tuple[float, int, int, int]]
) -> None:
    small, at_s = replica(kv_tokens=kv_tokens, prefix_caching=reuse), 0.0

    def holds_to_its_room() -> None:
        assert small.running <= 1 or small.kv.used <= small.kv.capacity + 1e-4
        assert small.kv.idle + small.kv.used <= max(small.kv.capacity, small.kv.used) + 1

    for after_s, prompt, blocks, output in asked:
        at_s += after_s
        for _ in goes_on(small, at_s):
            holds_to_its_room()
        small.enqueue(served(arrival(at_s, range(prompt << 20, (prompt << 20) + blocks), output=output)))
        holds_to_its_room()
    while (next_s := small.next_s()) < math.inf:
        small.advance(next_s)
        holds_to_its_room()
    assert (small.load, small.kv.used) == (0, pytest.approx(0, abs=1e-4))


def test_looking_at_it_more_often_changes_neither_what_happens_nor_by_much_when() -> None:
    arrivals = [unlike(number / 10, number, 200, 100) for number in range(20)]
    seldom, ended_s = plays(replica(), arrivals)
    often = replica()
    asked, moments = [], {}
    for one in arrivals:
        for at_s in (one.at_s - 0.07, one.at_s - 0.03, one.at_s):
            for sequence in goes_on(often, max(at_s, often.at_s)):
                moments[sequence] = often.at_s
        asked.append(served(one))
        often.enqueue(asked[-1])
    for sequence in goes_on(often):
        moments[sequence] = often.at_s
    assert [moments[one] for one in asked] == pytest.approx([ended_s[one] for one in seldom], rel=0.002)


def test_after_a_month_of_life_what_is_due_still_comes_at_its_moment() -> None:
    old = replica()
    old.advance(3e7)
    old.iterations = 1e10
    sequence = served(unlike(3e7, 1, 100, 50))
    old.enqueue(sequence)
    assert list(goes_on(old)) == [sequence]
    assert old.at_s - 3e7 == pytest.approx(plays(replica(), [unlike(0.0, 1, 100, 50)])[1].popitem()[1], rel=0.01)


def test_what_is_due_nearer_than_a_moment_can_say_happens_at_that_moment() -> None:
    old = replica()
    old.advance(1e9)
    sequence = served(unlike(1e9, 1, 100, 1))
    old.enqueue(sequence)
    old.advance(math.nextafter(old.next_s(), 0))
    old.slowness = 0.01
    old.configure(deployment(), old.roofline, old.serving)
    assert old.next_s() == old.at_s
    assert [one.sequence for one in old.advance(old.next_s())] == [sequence]


def test_a_change_of_settings_keeps_what_runs_and_a_restart_drops_what_is_idle() -> None:
    for reuse in (True, False):
        turned = replica(prefix_caching=reuse)
        sequences = [served(arrival(0.0, range(number, number + 9), output=300)) for number in (0, 100)]
        turned.enqueue(sequences[0])
        list(goes_on(turned, 0.5))
        other = Serving(prefix_caching=not reuse, kv_bits=8)
        turned.configure(deployment(), roofline(other), other, restart=True)
        turned.enqueue(sequences[1])
        list(goes_on(turned, 1.0))
        turned.configure(deployment(), roofline(Serving()), Serving(prefix_caching=reuse), restart=True)
        assert list(goes_on(turned)) == sequences
        assert turned.kv.used == pytest.approx(0, abs=1e-9)
        assert turned.kv.idle == 9


def test_a_cache_that_shrinks_below_what_runs_makes_the_last_ones_give_way() -> None:
    turned = replica(kv_tokens=8000)
    sequences = [served(unlike(0.0, number, 1600, 100)) for number in range(4)]
    for sequence in sequences:
        turned.enqueue(sequence)
    list(goes_on(turned, 0.4))
    small = Serving(kv_tokens=4000)
    turned.configure(deployment(), roofline(small), small)
    assert (turned.running, turned.preemptions) == (2, 2)
    assert turned.kv.used <= turned.kv.capacity
    assert len(list(goes_on(turned))) == 4


def test_sequences_that_draft_go_on_drafting_at_its_cost_after_the_lever_is_off() -> None:
    turned = replica(speculation=Speculation(draft_tokens=2, acceptance=(0.5,), overhead_s=0.1))
    turned.enqueue(served(unlike(0.0, 1, 16, 41), Drafted(20, 20, (12, 8)), 2))
    list(goes_on(turned, 1.0))
    left, before = turned.next_s() - turned.at_s, turned.at_s
    turned.configure(deployment(), roofline(Serving()), Serving())
    assert turned.next_s() - before == pytest.approx(left)
    list(goes_on(turned))
    assert (turned.verify_steps, turned.accepted[:3]) == (20, [12, 8, 0])


def test_what_was_read_elsewhere_takes_no_reading_here_even_when_it_gave_way() -> None:
    small = replica(kv_tokens=1600)
    moved = [served(unlike(0.0, number, 320, 600)) for number in range(3)]
    for sequence in moved:
        sequence.way, sequence.moved_s = object(), 0.0
        small.adopt(sequence)
    ended = list(goes_on(small))
    assert sorted(ended, key=moved.index) == moved
    assert small.preemptions > 0
    assert (small.prompt_tokens, small.transferring, small.load) == (0, 0, 0)


def test_who_gave_way_goes_on_before_what_came_over_the_link_after_it() -> None:
    small = replica(kv_tokens=1600)
    moved = [served(unlike(0.0, number, 320, 600)) for number in range(12)]
    for sequence in moved:
        sequence.way, sequence.moved_s = object(), 0.0
        small.adopt(sequence)
    assert [moved.index(sequence) for sequence in goes_on(small)] == list(range(12))
    assert small.preemptions > 0


def test_a_worker_that_only_reads_hands_prompts_on_and_holds_them_until_they_have_moved() -> None:
    reader = replica(kv_tokens=640)
    first, second = (served(unlike(0.0, number, 512, 10)) for number in range(2))
    for sequence in (first, second):
        sequence.way = object()
        reader.enqueue(sequence)
    [(what, read)] = reader.advance(reader.next_s())
    assert (what, read) == ("prefilled", first)
    assert (reader.transferring, reader.running, reader.next_s()) == (1, 0, math.inf)  # the second does not fit beside it
    reader.let_go(first)
    assert (reader.transferring, reader.running) == (0, 1)
    assert reader.advance(reader.next_s()) == [("prefilled", second)]


def test_a_lookup_takes_its_time_before_the_first_token() -> None:
    [quick], _ = plays(replica(), [unlike(0.0, 1, 1600, 2)])
    [slow], _ = plays(replica(lookup_s_per_block=0.001), [unlike(0.0, 1, 1600, 2)])
    assert slow.prefilled_s - quick.prefilled_s == pytest.approx(0.1)
