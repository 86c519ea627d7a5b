from __future__ import annotations

import pytest

from alerts.chain import Harm
from alerts.policy import PolicyError, parse, shipped_text

HARM = '[[disable_when]]\nkind = "harm"\nmetric = "net_itl_gain"\nis = "below"\nthreshold = -0.02\nunit = "ratio"'


def with_harm(text: str) -> tuple[str, str]:
    return HARM, f'[[disable_when]]\nkind = "harm"\n{text}'


def problem(change: str, to: str) -> str:
    text = shipped_text("speculation-net-itl")
    assert change in text
    with pytest.raises(PolicyError) as caught:
        parse(text.replace(change, to, 1), "my.toml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "to", "told"),
    [
        ('lever = "speculation"', 'lever = "speculatoin"', "lever: lever 'speculatoin' is unknown; did you mean 'speculation'?"),
        ('"kv_quantization"', '"kv_quantisation"', "revalidates[0]: lever 'kv_quantisation' is unknown; did you mean 'kv_quantization'?"),
        ('metric = "tpot_s"', 'metric = "tpot"', "measured_bottleneck.metric: metric 'tpot' is unknown; did you mean 'tpot_s'?"),
        ('metric = "acceptance_length"', 'metric = "acceptance_lenght"', "disable_when[2].metric: metric 'acceptance_lenght' is unknown"),
        ('unit = "tokens/step"', 'unit = "token/step"', "unit: takes 'tokens/step' for acceptance_length, got 'token/step'"),
        ('unit = "tokens/step"', 'unit = "ratio"', "disable_when[2].unit: takes 'tokens/step' for acceptance_length, got 'ratio'"),
        (
            "threshold = 1.25",
            "threshold = 0.9",
            "0.9 is out of bounds: acceptance_length takes 1 to 1000 (tokens/step)",
        ),
        ("threshold = 1.25", "threshold = 1.0", "disable_when[2].threshold: below 1.0 can never hold"),
        ('is = "below"\nthreshold = 1.25', 'is = "above"\nthreshold = 1.25', "disable_when[2].is: takes 'below', because higher is better"),
        ('is = "above"\nrelative', 'is = "below"\nrelative', "disable_when[1].is: takes 'above', because lower is better for ttft_s"),
        (
            "relative_to_control = 1.25",
            "relative_to_control = -1",
            "a factor from 0.1 to 10, such as 1.25 for a quarter more than control; got -1",
        ),
        ('is = "above"\nthreshold = 0.05', 'is = "below"\nthreshold = 0.05', "re_enable_when.is: takes 'above'"),
        ("threshold = 0.05", "threshold = -0.02", "re_enable_when: its threshold must be better than that of disable_when[0]"),
        ("threshold = 0.05", "threshold = -0.05", "re_enable_when: its threshold must be better than that of disable_when[0]"),
        ("re_enable_at = 1.5", "re_enable_at = 1.25", "disable_when[2].re_enable_at: takes a value above the threshold 1.25, got 1.25"),
        ("re_enable_at = 48", "re_enable_at = 80", "disable_when[3].re_enable_at: takes a value below the threshold 64, got 80"),
        ("threshold = -0.02\n", "threshold = 0.1\n", "disable_when[0]: harm takes a gain limit of 0 or below, got 0.1"),
        (HARM, HARM.replace("harm", "benefit_gone").replace("-0.02", "0.0"), None),
        ("minimum_gain = 0.0", "minimum_gain = 1.5", "expected_benefit.minimum_gain: "),
        ('metric = "batch_at_admission"\nis = "above"', 'metric = "acceptance_length"\nis = "above"', "a second premise_lost"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_its_key(change: str, to: str, told: str | None) -> None:
    if told is None:
        parse(shipped_text("speculation-net-itl").replace(change, to, 1), "my.toml")
        return
    assert told in problem(change, to)


def test_harm_by_a_single_arm_value_is_refused() -> None:
    error = problem(*with_harm('metric = "tpot_s"\nis = "above"\nthreshold = 0.05\nunit = "s/token"'))
    assert "disable_when[0].metric: harm compares with control" in error


def test_a_gain_is_not_compared_with_control_once_more() -> None:
    error = problem(*with_harm('metric = "net_itl_gain"\nis = "below"\nrelative_to_control = 0.9\nunit = "ratio"'))
    assert "net_itl_gain is a comparison with control already" in error


def test_harm_may_be_written_as_a_factor_on_the_control() -> None:
    change, to = with_harm('metric = "net_itl_s"\nis = "above"\nrelative_to_control = 1.0\nunit = "ratio"')
    policy = parse(shipped_text("speculation-net-itl").replace(change, to, 1), "my.toml")
    assert isinstance(policy.disable_when[0], Harm)
    assert policy.disable_when[0].relative_to_control == 1.0


def test_equal_thresholds_are_found_even_when_written_in_two_ways() -> None:
    text = shipped_text("speculation-net-itl")
    change, to = with_harm('metric = "net_itl_s"\nis = "above"\nrelative_to_control = 1.0\nunit = "ratio"')
    with pytest.raises(PolicyError, match="or the state flaps: off at 0, on at 0"):
        parse(text.replace(change, to, 1).replace("threshold = 0.05", "threshold = 0.0"), "my.toml")


def test_benefit_gone_stands_at_the_minimum_gain() -> None:
    text = shipped_text("speculation-net-itl").replace('kind = "harm"', 'kind = "benefit_gone"', 1)
    text = text.replace("minimum_gain = 0.0", "minimum_gain = 0.02")
    with pytest.raises(PolicyError, match=r"takes the gain limit of expected_benefit.minimum_gain, 0.02; got -0.02"):
        parse(text, "my.toml")


def test_every_problem_of_a_file_is_told_at_once() -> None:
    text = (
        shipped_text("speculation-net-itl").replace('lever = "speculation"', 'lever = "x"').replace("threshold = 1.25", "threshold = 0.5")
    )
    with pytest.raises(PolicyError) as caught:
        parse(text, "my.toml")
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == ["lever", "disable_when[2].threshold"]
