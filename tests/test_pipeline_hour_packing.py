"""Which replicas of an hour are settled together: those that serve pairs, and those of one model while a share holds them."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline import hour_packing

Served = tuple[str | None, str | None, str | None, str | None]


def counts(rows: list[tuple[Served, int]]) -> pl.DataFrame:
    requests = [served for served, count in rows for _ in range(count)]
    names = ["model", *hour_packing.SERVED]
    return hour_packing.counted(pl.DataFrame(requests, dict.fromkeys(names, pl.String), orient="row"))


def packed(rows: list[tuple[Served, int]], most: int) -> dict[str, int]:
    return dict(hour_packing.packed(counts(rows), most))


def test_replicas_of_a_pair_are_in_one_share_however_many_requests_they_have() -> None:
    rows: list[tuple[Served, int]] = [(("m", "d-0", "p-0", "d-0"), 9), (("m", "d-1", "p-0", "d-1"), 9), (("m", "d-2", "p-2", "d-2"), 1)]
    found = packed(rows, 5)
    assert found["d-0"] == found["p-0"] == found["d-1"]
    assert found["d-2"] == found["p-2"] != found["d-0"]


def test_replicas_of_a_model_stay_together_while_a_share_holds_them() -> None:
    rows: list[tuple[Served, int]] = [((model, f"{model}-{number}", None, None), 3) for model in ("a", "b") for number in range(3)]
    together = packed(rows, 9)
    assert len({together[f"a-{number}"] for number in range(3)}) == 1
    assert together["a-0"] != together["b-0"]
    apart = packed(rows, 4)
    assert len({apart[f"a-{number}"] for number in range(3)}) == 3


def test_requests_that_name_no_replica_are_settled_by_their_model() -> None:
    rows: list[tuple[Served, int]] = [(("a", None, None, None), 5), (("b", None, None, None), 5), ((None, None, None, None), 5)]
    assert set(packed(rows, 5)) == {"model a", "model b", "model "}
    assert len(set(packed(rows, 5).values())) == 3


def test_without_requests_there_are_no_shares() -> None:
    assert packed([], 10) == {}


names = st.one_of(st.none(), st.sampled_from(["r0", "r1", "r2", "r3", "r4"]))


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), names, names, names), min_size=1, max_size=40), st.integers(1, 20))
def test_every_request_has_one_share_that_holds_all_its_replicas(served: list[Served], most: int) -> None:
    requests = pl.DataFrame(served, dict.fromkeys(["model", *hour_packing.SERVED], pl.String), orient="row")
    found = hour_packing.packed(hour_packing.counted(requests), most)
    homes = requests.select(hour_packing.home()).to_series().to_list()
    for home, (_, *replicas) in zip(homes, served, strict=True):
        assert {found[home]} == {found[name] for name in (home, *replicas) if name is not None}
    assert sorted(set(found.values())) == [*range(max(found.values()) + 1)]
