"""An operator's own small policy is taken; one whose parts do not hang together is refused with the key and what it takes."""

from __future__ import annotations

import pytest

from alerts.policy import PolicyError, parse, shipped_text

SMALL = """
name = "my-speculation"
lever = "speculation"
owner = "me"
version = 3

[measured_bottleneck]
phase = "decode"
resource = "memory_bandwidth"
metric = "tpot_s"

[enabling_condition]
metric = "batch_at_admission"
is = "below"
threshold = 16
unit = "requests"
for_blocks = 1
source = "measured in May"

[receiving_budget]
budget = "compute"
metric = "ttft_s"

[expected_benefit]
metric = "net_itl_gain"
minimum_gain = 0

[failure_mode]
metric = "ttft_s"

[quality_gate]
suite = "product"
kind = "product"
max_age_days = 90

[[disable_when]]
kind = "harm"
metric = "net_itl_gain"
is = "below"
threshold = 0
unit = "ratio"
for_blocks = 3
source = "a loss"

[[disable_when]]
kind = "premise_lost"
metric = "batch_at_admission"
is = "above"
threshold = 24
unit = "requests"
for_blocks = 3
source = "measured in May"

[[disable_when]]
kind = "failure_mode"
metric = "ttft_s"
is = "above"
threshold = 2
unit = "s"
for_blocks = 3
source = "our SLO"

[[disable_when]]
kind = "quality"
metric = "quality"
is = "below"
relative_to_control = 1
unit = "ratio"
for_blocks = 1
source = "noise"

[rollback]
steps = ["restart without it"]

[re_enable_when]
metric = "net_itl_gain"
is = "above"
threshold = 0.1
unit = "ratio"
for_blocks = 6
source = "a band"
"""
GATES = {
    "latency": ("ttft_s_p95", "above", "relative_to_control = 1.2", "ratio"),
    "throughput": ("queue_s", "above", "relative_to_control = 2", "ratio"),
    "memory": ("kv_usage", "above", "threshold = 0.9", "ratio"),
    "cost": ("gpu_s_per_output_token", "above", "relative_to_control = 1.1", "ratio"),
    "errors": ("error_rate", "above", "threshold = 0.05", "ratio"),
    "quality": ("quality", "below", "relative_to_control = 1", "ratio"),
}


def gate(covers: str, metric: str, side: str, limit: str, unit: str) -> str:
    return (
        f'[[gates]]\ncovers = "{covers}"\nmetric = "{metric}"\nis = "{side}"\n{limit}\nunit = "{unit}"\nfor_blocks = 1\nsource = "ours"\n'
    )


TEXT = SMALL + "\n".join(gate(covers, *rest) for covers, rest in GATES.items())


def problem(change: str, to: str, text: str = TEXT) -> str:
    assert change in text
    with pytest.raises(PolicyError) as caught:
        parse(text.replace(change, to, 1), "my.toml")
    return str(caught.value)


def test_a_small_policy_of_ones_own_is_taken() -> None:
    policy = parse(TEXT, "my.toml")
    assert (policy.name, policy.severity, policy.shadow, len(policy.gates)) == ("my-speculation", "warning", False, 6)


def test_two_policies_may_be_on_one_lever_and_metric() -> None:
    assert parse(TEXT, "a.toml").lever == parse(shipped_text("speculation-net-itl"), "b.toml").lever


@pytest.mark.parametrize(
    ("change", "to", "told"),
    [
        ('metric = "ttft_s_p95"', 'metric = "tpot_s"', "gates[0].metric: takes ttft_s_p50 or ttft_s_p95"),
        ('metric = "kv_usage"\nis = "above"', 'metric = "kv_usage"\nis = "sideways"', "gates[2].is: "),
        (
            'metric = "error_rate"\nis = "above"',
            'metric = "error_rate"\nis = "below"',
            "gates[4].is: takes 'above', because lower is better",
        ),
        ('covers = "memory"', 'covers = "memroy"', "gates[2].covers: "),
        ('covers = "memory"', 'covers = "throughput"', "gates: takes a gate with covers = 'memory', got cost, errors"),
        (
            'metric = "kv_usage"',
            'metric = "evicted_tokens_per_request"',
            "gates[2].metric: effects do not carry evicted_tokens_per_request",
        ),
        ('metric = "queue_s"', 'metric = "requests_per_s"', "gates[1].metric: effects do not carry requests_per_s"),
        ('suite = "product"', 'suite = ""', "quality_gate.suite: "),
        (
            '[failure_mode]\nmetric = "ttft_s"',
            '[failure_mode]\nmetric = "tpot_s"',
            "failure_mode.metric: tpot_s is watched by no trigger and no",
        ),
        (
            'compute"\nmetric = "ttft_s"',
            'compute"\nmetric = "queue_share"',
            "receiving_budget.metric: queue_share is watched by no trigger",
        ),
        (
            'metric = "batch_at_admission"\nis = "below"',
            'metric = "concurrency"\nis = "below"',
            "enabling_condition.metric: concurrency is used by no trigger, gate or advice",
        ),
        (
            '[expected_benefit]\nmetric = "net_itl_gain"',
            '[expected_benefit]\nmetric = "tpot_s"',
            "expected_benefit.metric: no harm or benefit_gone",
        ),
        (
            'kind = "harm"',
            'kind = "harm"\naction = "restore_precision"',
            "disable_when[0].action: takes 'disable' or 'shorten' for speculation",
        ),
        ('kind = "harm"', 'kind = "harm"\naction = "shrink"', "disable_when[0].action: "),
        ('kind = "harm"', 'kind = "harm"\nseverity = "loud"', "disable_when[0].severity: "),
        ("version = 3", 'version = 3\nseverity = "loud"', "severity: "),
        ("version = 3", "version = 3\nshadow = 1", "shadow: "),
        (
            "version = 3",
            'version = 3\ngoes_before = ["speculation"]',
            "goes_before[0]: takes other levers, got the policy's own, 'speculation'",
        ),
        ("version = 3", 'version = 3\nrevalidates = ["speculation"]', "revalidates[0]: takes other levers, got the policy's own"),
        ("version = 3", 'version = 3\ngoes_before = ["tensor_paralel"]', "goes_before[0]: lever 'tensor_paralel' is unknown; did you mean"),
        (
            'steps = ["restart without it"]',
            'steps = ["x"]\n[rollback.engine]\nvlm = "y"',
            "rollback.engine.vlm: engine 'vlm' is unknown; did",
        ),
    ],
)
def test_a_part_that_does_not_fit_is_refused_with_its_key(change: str, to: str, told: str) -> None:
    assert f"my.toml: {told}" in problem(change, to)


def test_a_loss_that_counts_only_somewhere_does_not_stand_in_for_one_that_counts_everywhere() -> None:
    where = '[[disable_when.where]]\nmetric = "concurrency"\nis = "above"\nthreshold = 4\nunit = "requests"\nfor_blocks = 1\nsource = "x"\n'
    change = 'source = "a loss"\n'
    assert "disable_when: takes a trigger of kind 'harm' without a where" in problem(change, f"{change}\n{where}")


def test_what_narrows_a_trigger_has_a_metric_a_unit_and_bounds_of_its_own() -> None:
    where = '[[disable_when.where]]\nmetric = "kv_usage"\nis = "above"\nthreshold = 1.5\nunit = "requests"\nfor_blocks = 1\nsource = "x"\n'
    error = problem('source = "our SLO"\n', f'source = "our SLO"\n\n{where}')
    assert "disable_when[2].where[0].unit: takes 'ratio' for kv_usage, got 'requests'" in error
    assert "disable_when[2].where[0].threshold: 1.5 is out of bounds" in error


def test_quality_and_its_trigger_belong_together() -> None:
    harm = 'kind = "harm"\nmetric = "net_itl_gain"\nis = "below"\nthreshold = 0\n'
    error = problem(harm, 'kind = "harm"\nmetric = "quality"\nis = "below"\nrelative_to_control = 0.9\n')
    assert "disable_when[0].metric: kind 'quality' and metric 'quality' go together" in error


def test_a_pool_ratio_may_be_judged_by_premises_alone() -> None:
    change = 'kind = "harm"\nmetric = "net_itl_gain"\nis = "below"\nthreshold = 0\n'
    to = 'kind = "premise_lost"\nmetric = "queue_share"\nis = "above"\nthreshold = 0.2\n'
    assert "disable_when: takes a trigger of kind 'harm'" in problem(change, to)
    parse(TEXT.replace(change, to, 1).replace('lever = "speculation"', 'lever = "pool_ratio"'), "my.toml")


def test_more_metrics_that_are_compared_than_three_are_refused() -> None:
    more = "".join(
        f'[[disable_when]]\nkind = "failure_mode"\nmetric = "{metric}"\nis = "above"\nrelative_to_control = 1.5\nunit = "ratio"\n'
        'for_blocks = 1\nsource = "x"\n\n'
        for metric in ("tpot_s", "e2e_s", "ttft_s_p99")
    )
    error = problem("[rollback]", f"{more}[rollback]")
    assert (
        "disable_when: takes at most 3 metrics that are compared, with that of re_enable_when; got e2e_s, net_itl_s, tpot_s, ttft_s_p99"
        in error
    )


def test_a_second_gate_or_advice_on_the_same_metric_is_refused() -> None:
    twice = TEXT + gate("memory", *GATES["memory"])
    advice = (
        '[[advise_when]]\nmetric = "kv_usage"\nis = "below"\nthreshold = 0.1\nunit = "ratio"\nfor_blocks = 1\nsource = "x"\nadvice = "y"\n'
    )
    assert "gates[6]: a second gate on kv_usage that covers memory; takes one" in problem("version = 3", "version = 4", twice)
    assert "advise_when[1]: a second advice on kv_usage; takes one" in problem("version = 3", "version = 4", TEXT + advice + advice)
