"""What widens a stream's scale: what splits of one arm found at its length, else what is shipped; and what is said where nothing holds."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import polars as pl
from evidence_days import BLOCK, LEVER, cells, days

from pipeline.evidence import advanced
from pipeline.evidence_families import TIMES
from pipeline.evidence_streams import Streams
from pipeline.inference import calibration, scale
from pipeline.tuning import PLAIN, Tuning, widened

PAIRS = [(LEVER, '{"model":"a"}'), (LEVER, '{"model":"b"}'), ("prefix_caching", '{"model":"a"}')]
KEPT = {(LEVER, "tpot_s", 1): 1.3, (LEVER, "ttft_s", 4): None}


def test_a_scale_is_widened_by_what_was_found_for_its_lever_metric_and_length() -> None:
    phi = Tuning(KEPT).phi(PAIRS, ("tpot_s", "ttft_s"), np.array([1, 4, 1]))
    np.testing.assert_array_equal(phi, [1.3, scale.PHI, scale.PHI, np.nan, scale.PHI, scale.PHI])
    np.testing.assert_array_equal(widened(phi)[2:4], [scale.PHI, calibration.PHIS[-1]])
    assert PLAIN.phi(PAIRS, ("tpot_s",), np.ones(3, np.int64)).tolist() == [scale.PHI] * 3


def told(tuning: Tuning) -> pl.DataFrame:
    """What is told of a pair after enough blocks."""
    streams, found = Streams.start(TIMES), pl.DataFrame()
    for (began,), block in cells(days(52, 0.0, 5)[0]).group_by("block_started_at", maintain_order=True):
        assert isinstance(began, datetime)
        streams, found = advanced(streams, block, began + BLOCK, tuning)
    return found


def test_a_wider_scale_has_less_evidence_and_one_that_does_not_hold_is_uncalibrated() -> None:
    plain, wide, refused = (told(Tuning(phis)) for phis in ({}, {(LEVER, "tpot_s", 1): 1.4}, {(LEVER, "tpot_s", 1): None}))
    logs = [found.filter(metric="tpot_s")["evidence_above"].item()[3] for found in (plain, wide, refused)]
    assert logs == sorted(logs, reverse=True)
    assert logs[0] > logs[2] + 0.3
    assert [found["uncalibrated"].to_list() for found in (plain, wide)] == [[False] * 3] * 2
    assert refused.filter("uncalibrated")["metric"].to_list() == ["tpot_s"]
