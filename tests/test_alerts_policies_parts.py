"""Deleting each part of each shipped policy in turn is refused, with the file and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import alerts
from alerts.chain import COVERED
from alerts.policy import PolicyError, from_table, is_policy

FILES = sorted(path for path in (Path(alerts.__file__).parent / "policies").glob("*.toml") if is_policy(path.name))
RAW = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in FILES}
FREE = {"revalidates", "goes_before", "minimum_blocks", "minimum_requests", "minimum_coverage", "dwell_s", "advise_when", "because"}
"""What has a value of its own where a policy says none, or is a remark."""
WITH_DEFAULT = {"action", "severity", "repeats", "re_enable_at", "where", "engine"}
BACKED_UP = {
    "cache_affinity": {"premise_lost affinity_load_spread"},
    "expert_parallel": {"harm tpot_s"},
    "pool_ratio": {"premise_lost kv_usage", "failure_mode queue_share", "harm tpot_s"},
    "speculation": {"premise_lost acceptance_length", "harm net_itl_gain shorten", "premise_lost conditional_acceptance_at_2"},
}
"""Triggers that another trigger or a gate stands in for: a smaller policy may do without."""


def refused(raw: dict[str, Any]) -> str:
    with pytest.raises(PolicyError) as caught:
        from_table(raw, "my.toml")
    return str(caught.value)


def tables(raw: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every table of a file, with its key."""
    if isinstance(raw, list):
        for number, part in enumerate(raw):
            yield from tables(part, f"{path}[{number}]")
    elif isinstance(raw, dict):
        yield path, raw
        for key, part in raw.items():
            yield from tables(part, f"{path}.{key}" if path else key)


def table_at(raw: dict[str, Any], path: str) -> dict[str, Any]:
    return dict(tables(raw))[path]


def keys() -> Iterator[tuple[str, str, str]]:
    for name, raw in RAW.items():
        for path, table in tables(raw):
            if path != "rollback.engine":
                yield from ((name, path, key) for key in table if key not in FREE | WITH_DEFAULT)


@pytest.mark.parametrize(("name", "path", "key"), list(keys()))
def test_a_file_without_one_of_its_keys_is_refused_with_the_key_and_what_it_takes(name: str, path: str, key: str) -> None:
    raw = deepcopy(RAW[name])
    del table_at(raw, path)[key]
    error = refused(raw)
    assert error.startswith(f"my.toml: {path}")
    assert key in error
    assert "take" in error


@pytest.mark.parametrize(("name", "number"), [(name, number) for name, raw in RAW.items() for number in range(len(raw["gates"]))])
def test_a_file_without_one_of_its_gates_is_refused_with_what_it_covered(name: str, number: int) -> None:
    raw = deepcopy(RAW[name])
    gone = raw["gates"].pop(number)
    assert f"my.toml: gates: takes a gate with covers = '{gone['covers']}', got " in refused(raw)


@pytest.mark.parametrize("name", RAW)
def test_a_file_without_gates_is_refused_with_everything_that_they_have_to_cover(name: str) -> None:
    raw = deepcopy(RAW[name])
    del raw["gates"]
    error = refused(raw)
    assert all(f"my.toml: gates: takes a gate with covers = '{covered}'" in error for covered in COVERED)


@pytest.mark.parametrize(("name", "number"), [(name, number) for name, raw in RAW.items() for number in range(len(raw["disable_when"]))])
def test_a_file_without_one_of_its_triggers_is_refused_unless_another_stands_in_for_it(name: str, number: int) -> None:
    raw = deepcopy(RAW[name])
    gone = raw["disable_when"].pop(number)
    told = f"{gone['kind']} {gone['metric']}" + (f" {gone['action']}" if gone["kind"] == "harm" and "where" in gone else "")
    if told in BACKED_UP.get(name, ()):
        from_table(raw, "my.toml")
        return
    named = ("disable_when", "quality_gate", "failure_mode.metric", "receiving_budget.metric", "enabling_condition.metric")
    error = refused(raw)
    assert any(f"my.toml: {key}: " in error for key in (*named, "expected_benefit.metric"))
    assert "take" in error or gone["metric"] in error


@pytest.mark.parametrize("name", RAW)
def test_a_file_without_any_trigger_that_measures_loss_is_refused(name: str) -> None:
    raw = deepcopy(RAW[name])
    raw["disable_when"] = [trigger for trigger in raw["disable_when"] if trigger["kind"] not in ("harm", "premise_lost")]
    assert "my.toml: disable_when: takes a trigger of kind 'harm' without a where" in refused(raw)


@pytest.mark.parametrize("name", RAW)
def test_a_rollback_without_steps_is_refused(name: str) -> None:
    raw = deepcopy(RAW[name])
    raw["rollback"]["steps"] = []
    assert refused(raw).startswith("my.toml: rollback.steps: ")
