"""`[segments]`: edges and the bound on judging segments, from the file to the cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from leverwatch.config import Config, ConfigError, read
from leverwatch.engine_room import EngineRoom
from leverwatch.segment_settings import Segments
from pipeline.segments import Edges


def test_what_is_not_set_is_what_the_pipeline_takes() -> None:
    assert Segments().edges() == Edges()


def test_edges_and_limit_reach_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "leverwatch.toml").write_text("[segments]\ninput_edges = [100, 1000]\nlimit = 7\n")
    room = EngineRoom(tmp_path, read(None, tmp_path, {}))
    try:
        assert (room.edges.input_tokens, room.edges.limit_segments) == ((100, 1000), 7)
    finally:
        room.close()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("input_edges = [512, 512]", "each larger than the one before"),
        ("temperature_edges = []", "one or more numbers are taken"),
        ("limit = 0", "1 or more segments are taken"),
        ("batch_edge = [2]", "did you mean 'batch_edges'"),
    ],
)
def test_edges_that_make_no_buckets_are_refused(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "leverwatch.toml").write_text(f"[segments]\n{line}\n")
    with pytest.raises(ConfigError, match=told):
        read(None, tmp_path, {})


def test_a_report_says_what_it_was_answered_from(tmp_path: Path) -> None:
    room = EngineRoom(tmp_path, Config())
    try:
        asked = {source: room.report(metrics=["ttft_s"], source=source) for source in ("auto", "requests", "cells")}
        assert [frame.columns for frame in asked.values()] == [asked["requests"].columns] * 3
        assert asked["cells"]["requests"].to_list() == [0]
        with pytest.raises(ValueError, match="is unknown; known: auto, requests, cells"):
            room.report(source="nowhere")
    finally:
        room.close()
