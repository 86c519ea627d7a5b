"""`leverwatch work` on an S3-compatible server: what it makes is what it makes in a folder, through an outage and beside another."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import lake_worlds as worlds
import polars as pl
import pytest
from lake_worlds import MINUTE, NOW
from object_store import bucket
from polars.testing import assert_frame_equal

from leverwatch.lake_room import LakeRoom
from leverwatch.work_pool import Here
from leverwatch.work_tasks import Work
from leverwatch.working import Working
from pipeline import lake_cells
from queries.lake import Lake

pytest.importorskip("moto.server", reason="needs moto[server]")
KEYS = {"requests": ["started_at", "request_id"], "cells": [*lake_cells.SERIES, "metric"]}
Tables = dict[str, pl.DataFrame]


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """What a fleet said, the tables that are made of it in a folder, and the options of an object store."""

    said: list[worlds.Said]
    expected: Tables
    options: dict[str, str]

    def collected(self, uri: str, folder: Path) -> tuple[Lake, Work]:
        """A lake on the object store, and what tasks on it go by."""
        return worlds.collected(uri, self.said, self.options), worlds.work(uri, folder / "kept", self.options)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder, said = tmp_path_factory.mktemp("folder"), worlds.fleet(4, 2 * MINUTE)
    lake = worlds.collected(folder / "lake", said)
    assert once(worlds.work(folder / "lake", folder / "kept")) == {}
    with bucket("lake") as options:
        yield World(said, tables(lake), options)


def once(work: Work) -> dict[str, str]:
    """Which tasks of a round failed."""
    return Working(work, Here(), lambda: NOW).once(is_last=True).failed


def tables(lake: Lake) -> Tables:
    return {table: worlds.plain(pl.DataFrame(lake.read(table))).sort(keys, nulls_last=True) for table, keys in KEYS.items()}


def assert_same(lake: Lake, expected: Tables) -> None:
    for table, rows in tables(lake).items():
        assert len(rows), table
        assert_frame_equal(rows, expected[table], rel_tol=1e-12, abs_tol=0.0)


def test_what_is_made_on_an_object_store_in_parts_is_what_is_made_in_a_folder(world: World, tmp_path: Path) -> None:
    lake, work = world.collected("s3://lake/made", tmp_path)
    assert once(dataclasses.replace(work, part_spans=150)) == {}
    assert_same(lake, world.expected)
    room = LakeRoom(tmp_path / "served", worlds.config_of(lake.uri, world.options), clock=lambda: NOW)
    try:
        while room.reading.take(NOW):
            room.reading.hurry()
        assert room.store.rows("select count(*) as n from requests") == [{"n": len(world.expected["requests"])}]
    finally:
        room.close()


def test_two_drivers_at_once_leave_what_one_leaves(world: World, tmp_path: Path) -> None:
    lake, work = world.collected("s3://lake/two", tmp_path)
    both = [dataclasses.replace(work, kept=str(tmp_path / name), part_spans=spans) for name, spans in (("one", 100), ("two", 2_000_000))]
    failed: list[dict[str, str]] = []
    threads = [threading.Thread(target=lambda own=own: failed.append(once(own))) for own in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == [{}, {}]
    assert_same(lake, world.expected)


def test_a_round_during_an_outage_says_so_and_the_next_makes_all(world: World, tmp_path: Path) -> None:
    """Where the store should answer, nobody does for a round."""
    lake, work = world.collected("s3://lake/away", tmp_path)
    stop, told = threading.Event(), list[str]()

    def say(sentence: str) -> None:
        told.append(sentence)
        stop.set()

    away = tuple(sorted((world.options | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}).items()))
    Working(dataclasses.replace(work, options=away), Here(), lambda: NOW, say).forever(stop, 60.0)
    assert "this round failed and is tried again" in told[0]
    assert lake.files("requests") == []
    assert once(work) == {}
    assert_same(lake, world.expected)
