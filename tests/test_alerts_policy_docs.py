"""The page on policies says what their files say."""

from __future__ import annotations

from pathlib import Path

import pytest
from policy_drive import conditions

from alerts.chain import Policy, code_of
from alerts.policy import shipped
from alerts.policy_docs import page

PAGE = Path(__file__).parents[1] / "docs/policies.md"


def test_the_page_is_the_one_that_the_files_make(update_golden: bool) -> None:
    if update_golden:
        PAGE.write_text(page(shipped()), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(shipped()), "run `make golden`"


@pytest.mark.parametrize("policy", shipped(), ids=lambda policy: policy.name)
def test_a_policys_section_tells_its_triggers_thresholds_sources_and_the_way_back(policy: Policy) -> None:
    (told,) = (part for part in page([policy]).split("\n## ") if part.startswith(f"{policy.lever}\n"))
    assert all(f"`{code_of(policy, trigger)}`" in told and trigger.action in told for trigger in policy.disable_when)
    assert all(one.source in told for _, one in conditions(policy))
    assert all(step in told for step in policy.rollback.steps)
    assert all(f"| {engine} |" in told for engine in policy.rollback.engine)
    assert all(advice.advice in told for advice in policy.advise_when)
