"""Some thousand odd bodies of a fixed seed: read as the reference parser reads them, and no good span beside them is lost."""

from __future__ import annotations

from pathlib import Path

import collectors_fuzz
import pytest
from collectors_fuzz_bodies import Breaker, read, written
from collectors_fuzz_corpus import corpus


@pytest.mark.parametrize("seed", [1, 2])
def test_odd_bodies_are_read_as_the_reference_parser_reads_them_and_harm_no_other(seed: int) -> None:
    made, sound = collectors_fuzz.run(Breaker(corpus(None), seed), rounds=25)
    assert made == 800
    assert 0.2 < sound / made < 0.9


def test_recorded_bodies_made_odd_are_read_as_the_reference_parser_reads_them(recordings: Path) -> None:
    made, sound = collectors_fuzz.run(Breaker(corpus(recordings), 3), rounds=15)
    assert made == 480
    assert 0.2 < sound / made < 0.9


def test_a_body_that_is_taken_apart_and_not_changed_is_written_as_it_was() -> None:
    for body in corpus(None):
        assert written(read(body)) == body
