from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import alerts
from alerts.chain import Policy
from alerts.policy import PolicyError, from_table, is_policy, load, parse, shipped, shipped_text

FILES = sorted(path for path in (Path(alerts.__file__).parent / "policies").iterdir() if is_policy(path.name))
PARTS = [
    "name",
    "lever",
    "owner",
    "version",
    "measured_bottleneck",
    "enabling_condition",
    "receiving_budget",
    "expected_benefit",
    "failure_mode",
    "quality_gate",
    "disable_when",
    "rollback",
    "re_enable_when",
]
CONDITION = ["metric", "is", "unit", "for_blocks", "source"]
KEYS = {
    "measured_bottleneck": ["phase", "resource", "metric"],
    "enabling_condition": [*CONDITION, "threshold"],
    "receiving_budget": ["budget", "metric"],
    "expected_benefit": ["metric", "minimum_gain"],
    "failure_mode": ["metric"],
    "quality_gate": ["suite", "kind", "max_age_days"],
    "rollback": ["steps"],
    "re_enable_when": CONDITION,
}


def raw(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def refused(policy: dict[str, Any]) -> str:
    with pytest.raises(PolicyError) as caught:
        from_table(policy, "my.toml")
    return str(caught.value)


def speculation(change: str, to: str) -> str:
    text = shipped_text("speculation-net-itl")
    assert change in text
    with pytest.raises(PolicyError) as caught:
        parse(text.replace(change, to, 1), "my.toml")
    return str(caught.value)


def test_there_is_a_shipped_policy_for_speculation() -> None:
    assert "speculation" in {policy.lever for policy in shipped()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_policy_loads_from_its_file(path: Path) -> None:
    assert isinstance(load(path), Policy)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_policy_without_one_of_its_parts_is_refused_with_file_key_and_what_it_takes(path: Path, part: str) -> None:
    policy = raw(path)
    del policy[part]
    error = refused(policy)
    assert error.startswith(f"my.toml: {part} is missing; it takes ")


@pytest.mark.parametrize(("part", "key"), [(part, key) for part, keys in KEYS.items() for key in keys])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_part_without_one_of_its_keys_is_refused_by_name(path: Path, part: str, key: str) -> None:
    policy = raw(path)
    del policy[part][key]
    error = refused(policy)
    assert error.startswith(f"my.toml: {part}")
    assert key in error


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_trigger_without_one_of_its_keys_is_refused_by_name(path: Path) -> None:
    for number, trigger in enumerate(raw(path)["disable_when"]):
        for key in ("kind", *CONDITION):
            policy = raw(path)
            del policy["disable_when"][number][key]
            error = refused(policy)
            assert error.startswith(f"my.toml: disable_when[{number}].{key} is missing; it takes "), (trigger, error)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_threshold_of_a_shipped_policy_states_its_source(path: Path) -> None:
    policy = load(path)
    assert all(len(condition.source) > 20 for condition in (policy.enabling_condition, policy.re_enable_when, *policy.disable_when))


def test_a_policy_needs_at_least_one_trigger() -> None:
    policy = raw(FILES[0]) | {"disable_when": []}
    assert "my.toml: disable_when: " in refused(policy)


def test_an_unknown_key_gets_the_nearest_known_one() -> None:
    assert "key 'quality_gat' is unknown; did you mean 'quality_gate'?" in speculation("[quality_gate]", "[quality_gat]")


def test_an_unknown_key_inside_a_table_is_told_with_its_place() -> None:
    error = speculation("threshold = 1.25", "treshold = 1.25")
    assert error.startswith("my.toml: disable_when[2]: key 'treshold' is unknown; did you mean 'threshold'?")


def test_an_unknown_kind_is_told_with_the_kinds() -> None:
    error = speculation('kind = "harm"', 'kind = "hram"')
    assert error.startswith("my.toml: disable_when[0].kind: ")
    assert "'premise_lost'" in error


def test_a_word_outside_its_choice_is_told_with_the_choice() -> None:
    error = speculation('phase = "decode"', 'phase = "decoding"')
    assert error.startswith("my.toml: measured_bottleneck.phase: ")
    assert "'queue' or 'prefill' or 'transfer' or 'decode'" in error


def test_a_premise_cannot_be_written_against_control() -> None:
    error = speculation("threshold = 1.25", "relative_to_control = 1.25")
    assert "disable_when[2]: key 'relative_to_control' is unknown" in error


def test_a_condition_takes_exactly_one_of_threshold_and_relative_to_control() -> None:
    error = speculation("relative_to_control = 1.25", "relative_to_control = 1.25\nthreshold = 0.5")
    assert "disable_when[1]: takes exactly one of threshold and relative_to_control" in error


def test_a_number_that_is_not_finite_is_refused() -> None:
    assert "threshold takes a finite number" in speculation("threshold = 1.25", "threshold = nan")


def test_text_that_is_no_toml_is_refused_with_the_line() -> None:
    with pytest.raises(PolicyError, match=r"my.toml: is not TOML: .*line 2"):
        parse("\nname = = 1\n", "my.toml")


def test_a_file_that_is_not_there_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"nowhere\.toml: cannot be read"):
        load(tmp_path / "nowhere.toml")


def test_an_unknown_shipped_name_gets_the_known_ones() -> None:
    with pytest.raises(KeyError, match="did you mean 'speculation-net-itl'"):
        shipped_text("speculation-net-tl")


@pytest.mark.parametrize("key", ["dwell_s", "stale_after_s", "expires_after_s"])
@pytest.mark.parametrize(("value", "said"), [("inf", "takes a finite number, got inf"), ("1e12", "; takes a number from")])
def test_an_age_that_no_calendar_has_is_refused(key: str, value: str, said: str) -> None:
    text = "\n".join(line for line in shipped_text("speculation-net-itl").split("\n") if not line.startswith(key))
    with pytest.raises(PolicyError, match=f"{key}.*{said}"):
        parse(f"{key} = {value}\n{text}", "mine.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [("a = " + "[" * 50_000, "is not TOML"), ("a" + ".a" * 40_000 + " = 1", "dots a line"), ("#" * 10_000_000, "characters")],
)
def test_a_text_that_is_made_to_take_long_is_refused_at_once(text: str, said: str) -> None:
    with pytest.raises(PolicyError, match=f"mine.toml: .*{said}"):
        parse(text, "mine.toml")
