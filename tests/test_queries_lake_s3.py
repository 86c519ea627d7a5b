"""A lake on an S3-compatible server: the same as in a folder, also where commits of many meet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from object_store import bucket

from queries.lake import Lake, LakeError, StaleMarkError
from queries.lake_upkeep import Tidied, tidy

pytest.importorskip("moto.server", reason="needs moto[server]")
HOUR = datetime(2026, 3, 1, 10, tzinfo=UTC)
Opened = Callable[[], Lake]


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    with bucket("lake") as found:
        yield found


@pytest.fixture
def opened(options: dict[str, str], request: pytest.FixtureRequest) -> Opened:
    return lambda: Lake.open(f"s3://lake/{request.node.name}", options)


def settings(*minutes: int) -> pa.Table:
    """Settings of a lever, each since a minute of the hour."""
    since = pa.array([HOUR + timedelta(minutes=one) for one in minutes], pa.timestamp("us", "UTC"))
    return pa.table({"replica": ["r"] * len(since), "lever": ["l"] * len(since), "setting": ["s"] * len(since), "since": since})


def minutes(lake: Lake) -> list[int]:
    return sorted(int((one - HOUR) / timedelta(minutes=1)) for one in lake.read("lever_settings", ["since"])["since"].to_pylist())


def at_once(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_rows_marks_and_changes_come_back_from_an_object_store(opened: Opened) -> None:
    lake = opened()
    assert (lake.version("lever_settings"), lake.files("lever_settings")) == (-1, [])
    first = lake.append("lever_settings", settings(0, 61), {"kafka traces 0": 3})
    lake.replace("lever_settings", settings(5), [HOUR])
    other = opened()
    assert (minutes(other), other.mark("lever_settings", "kafka traces 0")) == ([5, 61], 3)
    assert other.changed("lever_settings", first) == {HOUR}
    assert [file.uri.startswith("s3://lake/") for file in other.files("lever_settings")] == [True, True]
    with pytest.raises(StaleMarkError):
        other.append("lever_settings", settings(1), {"kafka traces 0": 3})


def test_of_commits_that_meet_each_is_stored_once(opened: Opened) -> None:
    lakes = [opened() for _ in range(5)]
    versions: list[int] = []

    def write(lake: Lake, first: int) -> None:
        versions.extend(lake.append("lever_settings", settings(first + step)) for step in range(4))

    at_once(*(lambda lake=lake, number=number: write(lake, 10 * number) for number, lake in enumerate(lakes)))
    assert len(set(versions)) == 20
    assert minutes(lakes[0]) == sorted(10 * number + step for number in range(5) for step in range(4))


def test_an_hour_that_is_replaced_while_others_append_loses_nothing_of_theirs_that_came_behind_it(opened: Opened) -> None:
    lakes = [opened() for _ in range(3)]
    lakes[0].append("lever_settings", settings(0))
    at_once(
        lambda: [lakes[0].append("lever_settings", settings(60 + step)) for step in range(4)],
        lambda: [lakes[1].replace("lever_settings", settings(1), [HOUR]) for _ in range(3)],
        lambda: [lakes[2].replace("lever_settings", settings(2), [HOUR]) for _ in range(3)],
    )
    found = minutes(lakes[0])
    assert (len(found), found[0] in (1, 2), found[1:]) == (5, True, [60, 61, 62, 63])


def test_an_hour_is_tidied_while_others_append(opened: Opened) -> None:
    lake, other = opened(), opened()
    for minute in (0, 1, 1):
        lake.append("lever_settings", settings(minute))
    found: list[Tidied] = []
    at_once(lambda: found.append(tidy(lake, "lever_settings", HOUR)), lambda: other.append("lever_settings", settings(2)))
    tidy(lake, "lever_settings", HOUR)
    assert (found[0].copies, minutes(lake), len(lake.files("lever_settings"))) == (1, [0, 1, 2], 1)
    assert lake.vacuum("lever_settings", timedelta(hours=1)) == 0


def test_a_bucket_that_is_not_there_is_told(options: dict[str, str]) -> None:
    with pytest.raises(LakeError, match=r"s3://nowhere/lake/lever_settings: .*NoSuchBucket"):
        Lake.open("s3://nowhere/lake", options).append("lever_settings", settings(0))
