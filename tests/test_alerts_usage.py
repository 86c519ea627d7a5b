from __future__ import annotations

from around_judging import BLOCK, SEGMENT, START, cell_rows, cells, close, end, put, serve

from alerts import settings, usage
from alerts.usage import Usage
from queries.store import Store

COLD = SEGMENT.replace('"model":"m",', '"model":"m","temperature_bucket":"<0.3",')
WARM = COLD.replace("<0.3", ">=1.2")
KEY = ("weight_quantization", SEGMENT)
SPECULATION = ("speculation", COLD)


def served(store: Store, blocks: int | range, lever: str, **arms_n: int) -> None:
    """Requests of blocks by arm; `unmarked` ones state none."""
    rows = []
    for block in blocks if isinstance(blocks, range) else [blocks]:
        for arm, n in arms_n.items():
            if arm != "unmarked":
                rows += cell_rows(block, arm, n, {}, lever)
        rows += cell_rows(block, "", sum(arms_n.values()), {}, "")
    put(store, rows)


def at(store: Store, block: int, key: tuple[str, str] = KEY, since: int = -1) -> Usage:
    return usage.read(store, {key: end(since)}, end(block), end(block))[key].at(end(block))


def test_a_lever_is_gone_after_three_blocks_in_which_hardly_any_request_is_treated(store: Store) -> None:
    lever = KEY[0]
    served(store, range(3), lever, treated=95, control=5)
    served(store, range(3, 6), lever, treated=4, disabled_in_place=96)
    assert at(store, 2).in_use is True
    assert at(store, 4).in_use is None, "two blocks are too few"
    gone = at(store, 5)
    assert (gone.in_use, gone.treated_n, gone.all_n, gone.since) == (False, 12, 300, START + 3 * BLOCK)
    assert gone.said == "12 of 300 requests treated in 3 blocks"


def test_requests_that_state_the_lever_no_more_count_where_it_is_gone_as_a_whole(store: Store) -> None:
    served(store, 0, KEY[0], treated=100)
    served(store, range(1, 4), KEY[0], unmarked=100)
    assert at(store, 3).in_use is False


def test_a_segment_without_traffic_is_not_switched_off(store: Store) -> None:
    served(store, 0, KEY[0], treated=100)
    assert at(store, 5).in_use is True
    assert at(store, 60) == Usage(None, 0, 0, None, None, None, "no traffic")


def test_few_requests_take_more_blocks(store: Store) -> None:
    served(store, 0, KEY[0], treated=10)
    served(store, range(1, 13), KEY[0], control=10)
    assert at(store, 9).in_use is None
    assert at(store, 10).in_use is False


def test_it_is_back_with_treated_requests(store: Store) -> None:
    served(store, range(3), KEY[0], control=100)
    served(store, 3, KEY[0], control=60, treated=40)
    served(store, 4, KEY[0], control=60, treated=2)
    assert at(store, 3).in_use is True
    assert at(store, 3).treated_n == 40
    assert at(store, 4).in_use is None, "two requests may be a try"


def test_a_lever_that_is_tried_on_few_requests_is_still_in_use(store: Store) -> None:
    served(store, range(15), KEY[0], treated=3, unmarked=97)
    assert at(store, 14, since=11).in_use is True
    served(store, range(15, 18), KEY[0], unmarked=100)
    assert at(store, 17, since=11).in_use is False


def test_a_temperature_of_few_requests_is_not_gone_where_other_temperatures_are_treated(store: Store) -> None:
    for block in range(4):
        cells(store, block, "treated", 3, {}, "speculation", COLD)
        cells(store, block, "treated", 150, {}, "speculation", WARM)
        cells(store, block, "", 400, {}, "", SEGMENT)
    assert at(store, 3, SPECULATION).in_use is True
    for block in range(4, 7):
        cells(store, block, "", 400, {}, "", SEGMENT)
    gone = at(store, 6, SPECULATION)
    assert (gone.in_use, gone.all_n) == (False, 1200)


def test_a_lever_that_changes_the_topology_is_looked_for_in_all_topologies(store: Store) -> None:
    segment = '{"hardware":"h100","input_bucket":"<512","model":"m"}'
    cells(store, 0, "treated", 50, {}, "tensor_parallel", segment)
    for block in range(1, 4):
        cells(store, block, "", 50, {}, "", SEGMENT)
        cells(store, block, "", 50, {}, "", SEGMENT.replace("tp4", "tp8"))
    gone = at(store, 3, ("tensor_parallel", segment))
    assert (gone.in_use, gone.all_n) == (False, 300)


def test_the_setting_and_since_when_it_is_set_so_are_told(store: Store) -> None:
    for block, setting in enumerate(("int4", "fp8")):
        served(store, block, KEY[0], treated=100)
        serve(store, block, 30, {KEY[0]: setting}, {KEY[0]: "treated"})
    close(store, range(2))
    settings.read_next(store)
    assert (at(store, 0).setting, at(store, 0).set_at) == ("int4", START)
    now = at(store, 1)
    assert (now.setting, now.set_at) == ("fp8", START + BLOCK)
    assert now.set_since(START + BLOCK) == "fp8"
    assert now.set_since(START + 2 * BLOCK) is None


def test_the_usage_at_a_block_is_the_same_however_much_was_read(store: Store) -> None:
    served(store, range(40), KEY[0], treated=100)
    alone = at(store, 39)
    trail = usage.read(store, {KEY: end(-1)}, end(5), end(39))[KEY]
    assert trail.at(end(39)) == alone
    assert alone.said == "2400 of 2400 requests treated in 24 blocks"
