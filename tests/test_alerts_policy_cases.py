from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from judged_history import NAME, policy, text

from alerts.chain import Policy, PolicyError, code_of
from alerts.policy import shipped
from alerts.policy_cases import CaseError, Failed, failures, parse
from leverwatch.policy_casing import ENDS, cased

FOLDER = Path(str(resources.files("alerts") / "policies"))
FILES = sorted(FOLDER.glob(f"*{ENDS}"))
USUAL = "[usual.net_itl_s]\ngain = [0.1, 0.2]\ntreated = 0.023\ncontrol = 0.027\n"
BAD = "effects.net_itl_s = { gain = [-0.22, -0.09] }"


def failed(case: str, usual: str = USUAL) -> list[Failed]:
    """What does not hold of one case of the shipped policy of speculation."""
    cases = parse(f'{usual}[[cases]]\nname = "a case"\n{case}', "x.cases.toml")
    return failures(policy(), cases.cases[0], cases.usual)


def played(blocks: int, more: str = "") -> str:
    return f"[[cases.play]]\nblocks = {blocks}\n{more}\n"


def expect(**wanted: str | int) -> str:
    return "[[cases.expect]]\n" + "".join(f"{name} = {value!r}\n" for name, value in wanted.items())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_case_beside_a_shipped_policy_holds(path: Path) -> None:
    policy, cases = cased(str(path))
    for case in cases.cases:
        assert failures(policy, case, cases.usual) == [], case.name


@pytest.mark.parametrize("policy", shipped(), ids=lambda policy: policy.name)
def test_every_shipped_policy_has_a_case_for_each_trigger_and_for_what_fires_not_cannot_be_told_and_comes_back(policy: Policy) -> None:
    cases = cased(policy.name)[1].cases
    expected = [one for case in cases for one in case.expect]
    assert {code_of(policy, trigger) for trigger in policy.disable_when} <= {one.reason_code for one in expected}
    assert {"keep", "disable", "insufficient"} <= {one.verdict for one in expected}
    assert any([one.state for one in case.expect] == ["off_recommended", "on"] for case in cases)


def test_a_reason_is_held_against_what_it_must_not_say() -> None:
    assert failed(played(3, BAD) + expect(reason_lacks="advice")) == []
    [one] = failed(played(3, BAD) + expect(reason_lacks="gain -16 %"))
    assert one.text().startswith("block 3: expected reason_lacks 'gain -16 %', got 'a reason that has it'")


def test_evidence_is_as_the_interval_says_unless_a_case_says_that_none_is_there_yet() -> None:
    assert failed(played(3, BAD) + expect(verdict="disable", reason_code="harm")) == []
    unscaled = "effects.net_itl_s = { gain = [-0.22, -0.09], is_unscaled = true }"
    assert failed(played(3, unscaled) + expect(verdict="insufficient", reason_code="unscaled")) == []


def test_an_expectation_that_does_not_hold_is_told_with_what_came_and_why() -> None:
    [one] = failed(played(3, BAD) + expect(verdict="keep", state="off_recommended"))
    assert one.text().startswith("block 3: expected verdict 'keep', got 'disable'; ")
    assert "net ITL 23 ms against 27 ms in control, gain -16 %" in one.text()


def test_only_what_is_stated_is_held_against_a_block() -> None:
    assert failed(played(3, BAD) + expect(at=2, verdict="keep") + expect(state="off_recommended")) == []


def test_a_reason_is_held_against_a_piece_of_its_text() -> None:
    assert failed(played(3, BAD) + expect(reason_has="gain -16 %")) == []
    [one] = failed(played(3, BAD) + expect(reason_has="gain -17 %"))
    assert one.expected == {"reason_has": "gain -17 %"}


def test_a_block_may_differ_from_what_is_usual_in_one_number() -> None:
    assert failed(played(3, "effects.net_itl_s = { n_control = 7 }") + expect(reason_code="few_requests", reason_has="7 in control")) == []


def test_a_metric_that_is_left_out_is_not_measured() -> None:
    assert failed(played(1, 'without = ["net_itl_s"]') + expect(verdict="insufficient", reason_code="no_effect")) == []


def test_evidence_decides_where_a_case_states_any() -> None:
    assert failed(played(3, "effects.net_itl_s = { gain = [-0.3, 0.1], evident_below = -0.05 }") + expect(verdict="disable")) == []
    assert failed(played(3, "effects.net_itl_s = { gain = [-0.3, -0.1], evident_above = -0.1 }") + expect(verdict="keep")) == []


def test_silence_freezes_after_its_time() -> None:
    silent = played(2) + "[[cases.play]]\nblocks = 14\nis_silent = true\n"
    assert failed(silent + expect(at=8, verdict="keep") + expect(verdict="frozen", reason_code="stale")) == []


def test_what_is_known_beside_effects_is_part_of_a_case() -> None:
    known = played(1, 'known = { quality = "quality fell by 3 points" }')
    assert failed(known + expect(reason_has="quality fell by 3 points")) == []


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("", "x.cases.toml: Object missing required field `play`"),
        (played(1) + expect(verdikt="keep"), "unknown field `verdikt`"),
        (played(1, "effects.net_itl = { gain = 0.1 }") + expect(verdict="keep"), "play[0]: metric 'net_itl' is unknown"),
        (played(1) + expect(at=2, verdict="keep"), "'a case': expects something at block 2, and plays 1"),
        (played(9_000) + played(9_000) + expect(verdict="keep"), "plays 18000 blocks; at most 10000 are taken"),
        (played(1) + expect(verdict="kept"), "Invalid enum value 'kept'"),
        (played(1) + "[[cases.expect]]\n", "an expectation takes one at least of verdict, action"),
        (played(1) + "[[cases.expect]]\nat = 1\n", "an expectation takes one at least of verdict, action"),
        (played(1, "effects.net_itl_s = { gain = [0.2, -0.1] }") + expect(verdict="keep"), "an interval of such from low to high"),
        (played(1, "effects.net_itl_s = { gain = 12 }") + expect(verdict="keep"), "15 % is 0.15; got 12"),
        (played(1, "effects.net_itl_s = { gain = nan }") + expect(verdict="keep"), "gain takes a finite number, got nan"),
        (played(1, "a" + ".a" * 40_000 + " = 1") + expect(verdict="keep"), "dots a line"),
        ("play =", "x.cases.toml: "),
        ("play = " + "[" * 50_000, "x.cases.toml: "),
    ],
)
def test_cases_that_cannot_be_used_are_refused_with_what_is_wrong(case: str, said: str) -> None:
    with pytest.raises(CaseError) as told:
        failed(case)
    assert said in str(told.value)


def test_cases_are_found_beside_their_policy_by_the_path_of_either_or_by_a_shipped_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text(name='"mine"'), encoding="utf-8")
    (tmp_path / "mine.cases.toml").write_text(f'[[cases]]\nname = "a"\n{played(1)}{expect(verdict="insufficient")}', encoding="utf-8")
    for named in ("mine.toml", "mine.cases.toml"):
        found, cases = cased(str(tmp_path / named))
        assert (found.name, len(cases.cases)) == ("mine", 1)
    assert cased(NAME)[0].name == NAME
    (tmp_path / "mine.cases.toml").unlink()
    with pytest.raises(CaseError, match="there are no cases beside the policy; write cases there as those are"):
        cased(str(tmp_path / "mine.toml"))
    with pytest.raises(PolicyError, match="is no file, and policy 'nobody' is unknown"):
        cased("nobody")
