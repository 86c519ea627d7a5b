"""Every number and text of a policy has bounds, and what lies beyond them is refused with where, what came and what is taken."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from alerts import bounds
from alerts.carried import CARRIED
from alerts.chain import Policy
from alerts.effects import effect_name
from alerts.policy import PolicyError, parse, shipped_text
from pipeline.metrics import judged

BY_METRIC = {"threshold", "relative_to_control", "re_enable_at"}  # in the unit of a metric that another key names: `alerts.check` has them
WHOLE = shipped_text("speculation-net-itl")


def leaves(kind: Any, where: str = "policy", meta: msgspec.Meta | None = None) -> Iterator[tuple[str, Any, msgspec.Meta | None]]:
    """Each type that a policy file's values are read as, with its place and its bounds."""
    origin, inside = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for name, hint in get_type_hints(kind, include_extras=True).items():
            if not name.startswith("__"):
                yield from leaves(hint, f"{where}.{name}")
    elif origin is Annotated:
        yield from leaves(inside[0], where, inside[1])
    elif origin in (tuple, dict):
        yield where, origin, meta
        for one in inside:
            yield from leaves(one, where) if one is not Ellipsis else ()
    elif origin in (Union, types.UnionType):
        for one in inside:
            yield from leaves(one, where)
    elif origin is not Literal and kind not in (bool, type(None)):
        yield where, kind, meta


def test_every_number_and_text_of_a_policy_has_bounds() -> None:
    found = list(leaves(Policy))
    assert len(found) > 100
    for where, kind, meta in found:
        if where.rsplit(".", 1)[-1] in BY_METRIC or (where.endswith("rollback.engine") and kind is dict):
            continue
        assert meta is not None, where
        if kind in (int, float):
            assert None not in (meta.le, meta.ge if meta.gt is None else meta.gt), where
        else:
            assert meta.max_length is not None, where
            assert kind is not str or meta.pattern, where


@pytest.mark.parametrize("name", sorted(name for name in judged() if effect_name(name) in CARRIED))
def test_every_metric_that_a_policy_may_name_has_a_range_and_no_threshold_lies_out_of_it(name: str) -> None:
    metric = judged()[name]
    low, high = bounds.metric_range(metric)
    assert low < high < 1e9
    assert bounds.told(metric, low) is None
    assert bounds.told(metric, high) is None
    assert f"{name} takes {low:g} to {high:g}" in (bounds.told(metric, high * 1.01) or "")
    assert bounds.told(metric, low - 0.01) is not None


@pytest.mark.parametrize(
    ("change", "to", "told"),
    [
        (
            "threshold = -0.02",
            "threshold = -15",
            "disable_when[0].threshold: -15 is out of bounds: net_itl_gain takes -1 to 1 (ratio); -15 % is -0.15",
        ),
        (
            "threshold = 0.6",
            "threshold = 60",
            "where[0].threshold: 60 is out of bounds: conditional_acceptance_at_1 takes 0 to 1 (ratio); 60 % is 0.6",
        ),
        (
            "threshold = 64",
            "threshold = 1e9",
            "enabling_condition.threshold: 1e+09 is out of bounds: batch_at_admission takes 0 to 1e+06 (requests)",
        ),
        ("re_enable_at = 1.5", "re_enable_at = 1e9", "disable_when[2].re_enable_at: 1e+09 is out of bounds"),
        ("relative_to_control = 1.25", "relative_to_control = 125", "disable_when[1].relative_to_control: takes a factor from 0.1 to 10"),
        (
            "minimum_gain = 0.0",
            "minimum_gain = 5",
            "expected_benefit.minimum_gain: Expected `float` <= 1.0, got 5; takes a number from 0 to 1",
        ),
        ("minimum_blocks = 6", "minimum_blocks = 100", "minimum_blocks: Expected `int` <= 24, got 100; takes a whole number from 1 to 24"),
        (
            "minimum_requests = 100",
            "minimum_requests = 0",
            "minimum_requests: Expected `int` >= 1, got 0; takes a whole number from 1 to 1000000",
        ),
        (
            "for_blocks = 3",
            "for_blocks = 289",
            "enabling_condition.for_blocks: Expected `int` <= 288, got 289; takes a whole number from 1 to 288",
        ),
        ("dwell_s = 3600", "dwell_s = 31536000", "dwell_s: Expected `float` <= 604800.0, got 31536000; takes a number from 3600 to 604800"),
        (
            "max_age_days = 30",
            "max_age_days = 5000",
            "quality_gate.max_age_days: Expected `float` <= 366.0, got 5000; takes a number above 0 and up to 366",
        ),
        ("repeats = 5", "repeats = 5000", "quality_gate.repeats: Expected `int` <= 1000, got 5000; takes a whole number from 5 to 1000"),
        ('name = "speculation-net-itl"', f'name = "{"n" * 30_000}"', "name: Expected `str` of length <= 100, got 'nnn"),
        ('name = "speculation-net-itl"', 'name = "a\\u0000b"', "name: Expected `str`, got 'a\\x00b'; takes one line of text"),
        ('name = "speculation-net-itl"', 'name = "a\\nb"', "name: Expected `str`, got 'a\\nb'; takes one line of text"),
        ('name = "speculation-net-itl"', 'name = "a\\u202eb"', "name: Expected `str`, got 'a\\u202eb'; takes one line of text"),
        ('name = "speculation-net-itl"', 'name = " a"', "name: Expected `str`, got ' a'; takes one line of text that neither begins"),
        (
            'owner = "serving"',
            'owner = "a\\nBcc: x"',
            "owner: Expected `str`, got 'a\\nBcc: x'; takes one line of text, 1 to 500 characters",
        ),
        ('version = "2"', "version = -1", "version: Expected `int` >= 0, got -1; takes one line of text"),
        ('covers = "latency"', 'covers = "speed"', "gates[0].covers: Invalid enum value 'speed'; takes 'latency' or"),
        (
            'source = "the same blog',
            f'source = "{"s" * 3_000}',
            "disable_when[4].where[1].source: Expected `str` of length <= 2000, got 'sss",
        ),
        (
            "steps = [\n",
            'steps = [\n"\\u001b[2J",',
            "rollback.steps[0]: Expected `str`, got '\\x1b[2J'; takes text without control characters",
        ),
        ("minimum_coverage = 0.9", "minimum_coverage = nan", "minimum_coverage takes a finite number, got nan"),
    ],
)
def test_what_lies_beyond_its_bounds_is_refused_with_where_and_what_came_and_what_is_taken(change: str, to: str, told: str) -> None:
    assert change in WHOLE
    with pytest.raises(PolicyError) as caught:
        parse(WHOLE.replace(change, to, 1), "my.toml")
    assert f"my.toml: {told}" in str(caught.value) or told in str(caught.value)
    assert all(len(line) < 600 for line in str(caught.value).splitlines())


def test_a_metric_that_nobody_measures_is_told_with_the_nearest_and_what_lists_all() -> None:
    with pytest.raises(PolicyError) as caught:
        parse(WHOLE.replace('"ttft_s"', '"tftt_s"'), "my.toml")
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines][:2] == ["receiving_budget.metric", "failure_mode.metric"]
    assert "metric 'tftt_s' is unknown; did you mean 'ttft_s' or " in lines[0]
    assert all(line.endswith("`leverwatch policy metrics` lists all") for line in lines if "is unknown" in line)
    assert all(len(line) < 250 for line in lines)


def test_an_unknown_name_of_30_kilobytes_is_cut_where_it_is_told() -> None:
    for change, to in (
        ('lever = "speculation"', 'lever = "{}"'),
        ("\n[rollback.engine]\nvllm", "\n[rollback.engine]\n{}"),
        ("owner", "{}"),
    ):
        with pytest.raises(PolicyError) as caught:
            parse(WHOLE.replace(change, to.format("n" * 99 if "lever" in to or "roll" in to else "n" * 30_000), 1), "my.toml")
        assert len(str(caught.value)) < 1_000
