from __future__ import annotations

from alerts import carried
from pipeline import compare, evidence_families
from pipeline.metrics import TAILS, by_name, judged


def test_a_policy_may_name_what_effects_are_made_of_and_nothing_else() -> None:
    compared = {*compare.CONTRASTED, *compare.ALSO_CONTRASTED, *TAILS, "quality"}
    assert set(carried.COMPARED) == compared
    assert set(carried.ALONE) == {*compare.PREMISES, *compare.SPREADS}


def test_evidence_is_kept_of_every_mean_and_percentile_that_is_said_to_have_it() -> None:
    means = {metric for family in evidence_families.FAMILIES for metric in family.metrics}
    assert means <= set(carried.WITH_EVIDENCE)
    assert set(carried.WITH_EVIDENCE) - means == {*TAILS, "error_rate"}


def test_each_is_a_metric_once() -> None:
    assert len(set(carried.CARRIED)) == len(carried.CARRIED)
    assert set(carried.CARRIED) <= set(judged())
    assert set(carried.ALONE) <= set(by_name())
