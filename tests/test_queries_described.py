"""What people who ask by SQL are told of tables, columns and functions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queries import described
from queries.hot_copies import HotCopies
from queries.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def columns(store: Store) -> dict[str, list[tuple[str, str]]]:
    return HotCopies(store).columns


def test_every_relation_is_described_and_nothing_that_is_not_there(columns: dict[str, list[tuple[str, str]]]) -> None:
    words = described.words()
    assert set(words) == set(columns)
    for name, notes in words.items():
        assert set(notes) <= {"about", *(column for column, _ in columns[name])}, name


def test_requests_come_first_and_each_of_their_columns_is_said(columns: dict[str, list[tuple[str, str]]]) -> None:
    first = described.relations(columns)[0]
    assert first.name == "requests"
    assert [column.name for column in first.columns if not column.what] == []
    units = {column.name: column.unit for column in first.columns}
    assert (units["ttft_s"], units["kv_transfer_bytes"], units["prompt_tokens"], units["kv_usage"]) == ("s", "bytes", "tokens", "ratio")
    assert (units["link_peak_bytes_per_s"], units["started_at"], units["model"]) == ("bytes/s", "UTC", "")


@pytest.mark.parametrize("function", described.functions(), ids=lambda function: function.name)
def test_the_example_of_every_function_runs(store: Store, function: described.Function) -> None:
    assert function.name in function.example
    assert store.frame(function.example).width >= 1
