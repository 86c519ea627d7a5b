from __future__ import annotations

from pathlib import Path

from around_judging import BLOCK, START, close, end, serve

from alerts import settings
from alerts.settings import Held, Place, taken_over
from queries.store import Store

SCOPE = '{"hardware":"h100","model":"m","topology":"tp4"}'
PLACE = Place("weight_quantization", SCOPE)
TREATED = {"weight_quantization": "treated"}


def block(store: Store, number: int, **settings_n: int) -> None:
    for setting, n in settings_n.items():
        serve(store, number, n, {"weight_quantization": setting}, TREATED)
    close(store, [number])


def test_the_first_setting_of_a_scope_is_noted_and_is_no_change(store: Store) -> None:
    block(store, 0, fp8=30)
    changes, until = settings.read_next(store)
    assert [(change.place, change.before, change.setting, change.since) for change in changes] == [(PLACE, "", "fp8", START)]
    assert until == end(0)
    [row] = store.rows("select * from settings_in_use")
    assert (row["lever"], row["scope"], row["setting"], row["since"], row["is_change"]) == (*PLACE, "fp8", START, False)


def test_a_setting_takes_over_with_the_block_in_which_more_than_half_of_the_treated_requests_state_it(store: Store) -> None:
    block(store, 0, fp8=30)
    block(store, 1, fp8=20, int4=20)
    block(store, 2, fp8=19, int4=21)
    [_, change] = settings.read_next(store)[0]
    assert (change.before, change.setting, change.since) == ("fp8", "int4", START + 2 * BLOCK)


def test_reading_block_by_block_gives_what_reading_at_once_gives(store: Store, tmp_path: Path) -> None:
    for number, counts in enumerate([{"a": 5}, {"b": 5}, {"b": 4}, {"b": 6}, {"a": 30, "b": 1}]):
        block(store, number, **counts)
        settings.read_next(store)
    other = Store(tmp_path / "other")
    for number, counts in enumerate([{"a": 5}, {"b": 5}, {"b": 4}, {"b": 6}, {"a": 30, "b": 1}]):
        block(other, number, **counts)
    settings.read_next(other)
    told = "select setting, since from settings_in_use order by since"
    assert store.rows(told) == other.rows(told)
    assert [row["setting"] for row in store.rows(told)] == ["a", "b", "a"]
    assert store.rows(told)[1]["since"] == START + BLOCK, "few requests take three blocks, and it is since the first of them"
    other.close()


def test_nothing_new_is_read_and_written_once_all_blocks_were_seen(store: Store) -> None:
    block(store, 0, fp8=30)
    settings.read_next(store)
    assert settings.read_next(store) == ([], None)


def test_a_lever_is_off_in_a_scope_once_next_to_nobody_is_treated_for_half_an_hour() -> None:
    held: Held | None = Held("fp8")
    for number in range(5):
        held, took_over = taken_over(held, {None: 50}, START + number * BLOCK)
        assert not took_over
    held, took_over = taken_over(held, {None: 50}, START + 5 * BLOCK)
    assert took_over
    assert held == Held("off", since=START)
    assert taken_over(held, {"fp8": 30, None: 30}, START + 6 * BLOCK) == (Held("fp8", since=START + 6 * BLOCK), True)


def test_a_trial_on_few_percent_of_the_requests_is_not_off() -> None:
    held, took_over = taken_over(Held("fp8"), {"fp8": 3, None: 97}, START)
    assert (held, took_over) == (Held("fp8"), False)


def test_control_requests_do_not_count_and_a_topology_lever_has_a_scope_without_topology(store: Store) -> None:
    serve(store, 0, 30, {"tensor_parallel": "8"}, {"tensor_parallel": "treated"}, topology="tp8")
    serve(store, 0, 60, {"tensor_parallel": "4"}, {"tensor_parallel": "control"}, topology="tp4")
    close(store, [0])
    [change] = settings.read_next(store)[0]
    assert (change.place.scope, change.setting) == ('{"hardware":"h100","model":"m"}', "8")


def test_what_is_in_use_is_told_for_the_keys_of_a_segment_and_as_of_a_moment(store: Store) -> None:
    block(store, 0, fp8=30)
    block(store, 1, int4=30)
    settings.read_next(store)
    seen = settings.in_use(store)
    keys = {"model": "m", "hardware": "h100", "topology": "tp4", "input_bucket": "<512"}
    assert seen.at("weight_quantization", keys, end(0)) == ("fp8", START)
    assert seen.at("weight_quantization", keys, end(1)) == ("int4", START + BLOCK)
    assert seen.at("weight_quantization", keys | {"model": "x"}, end(1)) is None
    assert seen.settings("weight_quantization", "m", end(1)) == {"int4"}
    assert seen.settings("weight_quantization", "m", START) == set()
