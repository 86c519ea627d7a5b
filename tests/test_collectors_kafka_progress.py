"""An offset is committed when all before it are done, in whatever order they are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.kafka_progress import STORED, Answer, Arrived, Place, Progress

PLACE, OTHER = Place("otlp_spans", 0), Place("otlp_spans", 1)
BUSY, ASIDE = Answer("full", 2.0), Answer("no export")


def messages(*offsets: int, place: Place = PLACE) -> list[Arrived]:
    return [Arrived(place, offset, "traces", b"x") for offset in offsets]


def test_an_offset_behind_a_gap_in_what_is_done_is_not_committed_and_what_is_done_is_not_asked_again() -> None:
    progress = Progress()
    progress.arrived(messages(4, 5, 9))
    progress.answered(progress.waiting(), [STORED, BUSY, STORED])
    assert (progress.to_commit(), progress.waiting()) == ({PLACE: 5}, messages(5))
    progress.committed(progress.to_commit())
    assert progress.to_commit() == {}
    progress.answered(progress.waiting(), [ASIDE])
    assert (progress.to_commit(), progress.waiting()) == ({PLACE: 10}, [])


def test_a_partition_that_another_member_has_is_forgotten_and_the_others_go_on() -> None:
    progress = Progress()
    progress.arrived([*messages(0), *messages(7, place=OTHER)])
    progress.gone([PLACE])
    progress.answered([*messages(0), *messages(7, place=OTHER)], [STORED, STORED])
    assert (progress.to_commit(), progress.stored()) == ({OTHER: 8}, {OTHER: 8})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.lists(st.booleans(), min_size=12, max_size=12)), max_size=6))
def test_every_message_is_done_once_and_the_offset_never_passes_one_that_is_not(rounds: list[tuple[int, list[bool]]]) -> None:
    progress, done, next_offset = Progress(), [], 0
    for count, fates in rounds:
        progress.arrived(messages(*range(next_offset, next_offset + count)))
        next_offset += count
        waiting = progress.waiting()
        answers = [STORED if fates[place % len(fates)] else BUSY for place in range(len(waiting))]
        done += [one.offset for one, answer in zip(waiting, answers, strict=True) if answer.is_done]
        progress.answered(waiting, answers)
        first_open = next((offset for offset in range(next_offset) if offset not in done), next_offset)
        assert progress.stored().get(PLACE, 0) == first_open
    assert len(done) == len(set(done))
    assert sorted(done + [one.offset for one in progress.waiting()]) == list(range(next_offset))
