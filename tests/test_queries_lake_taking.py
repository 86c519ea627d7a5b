"""What a store takes in of a lake: of one and the same lake, and all of it where its versions count anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import lake_worlds as worlds
import pyarrow as pa
import pytest
from lake_worlds import HOUR, NOW

from leverwatch.lake_reading import LakeReading
from queries import lake_taking
from queries.lake import Lake, LakeError
from queries.lake_tables import columns
from queries.store import Store

ONE_HOUR = timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "store")
    yield opened
    opened.close()


def sample(hour: int) -> pa.Table:
    at = HOUR + hour * ONE_HOUR
    row = {"replica": "r", "name": "n", "kind": "gauge", "labels": [], "observed_at": at, "value": 1.0, "received_at": at, "sender": "s"}
    return pa.Table.from_pylist([row], columns("samples"))


def hours(store: Store) -> list[int]:
    return [(row["observed_at"] - HOUR) // ONE_HOUR for row in store.rows("select observed_at from samples order by all")]


def test_another_lake_is_refused_and_nothing_of_it_is_taken(store: Store, tmp_path: Path) -> None:
    for name, hour in (("one", 0), ("other", 1)):
        Lake.open(str(tmp_path / name)).append("samples", sample(hour))
    LakeReading(store, worlds.config_of(tmp_path / "one").store).take(NOW)
    with pytest.raises(LakeError, match=r"other is not the lake that .* \(other tables: samples\): .* folder of its own"):
        LakeReading(store, worlds.config_of(tmp_path / "other").store).take(NOW)
    assert hours(store) == [0]
    shutil.move(tmp_path / "one", tmp_path / "moved")
    Lake.open(str(tmp_path / "moved")).append("samples", sample(2))
    LakeReading(store, worlds.config_of(tmp_path / "moved").store).take(NOW)
    assert hours(store) == [0, 2]


def test_a_lake_that_was_put_back_to_an_earlier_state_is_taken_in_whole(store: Store, tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"))
    lake.append("samples", sample(0))
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    for _ in range(3):
        lake.append("samples", sample(1))
    lake_taking.take(store, lake, "samples", NOW)
    shutil.rmtree(tmp_path / "lake")
    shutil.move(tmp_path / "copy", tmp_path / "lake")
    again = Lake.open(str(tmp_path / "lake"))
    again.append("samples", sample(2))
    lake_taking.take(store, again, "samples", NOW)
    assert 2 in hours(store)


def test_effects_that_two_workers_gave_at_once_are_taken_once_and_those_of_another_arm_stay() -> None:
    one = {"lever": "l", "segment": '{"model":"m"}', "metric": "ttft_s", "arm_a": "treated", "arm_b": "control", "until": HOUR}
    rows = [one, one, one | {"arm_a": "disabled_in_place"}]
    taken = lake_taking.once("effects", pa.Table.from_pylist(rows, columns("effects")))
    assert taken["arm_a"].to_pylist() == ["treated", "disabled_in_place"]
