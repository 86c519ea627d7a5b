"""deploy/prometheus-rules.yaml: promtool takes it, each rule fires and stays quiet where it should, and asks for what there is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import observe_faces
import prometheus_rule_cases
import pytest
import yaml
from prometheus_client.metrics_core import Metric as Family

FILE = Path(__file__).parents[1] / "deploy/prometheus-rules.yaml"
RULES: list[dict[str, Any]] = [rule for group in yaml.safe_load(FILE.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
PARTS = ("_bucket", "_sum", "_count")
OF_A_TARGET = {"instance", "job", "le"}


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        said = "no promtool here; Debian's package prometheus has it"
        if os.environ.get("LEVERWATCH_REQUIRE_PROMTOOL") == "1":
            pytest.fail(said)
        pytest.skip(said)
    return found


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_promtool_finds_nothing_wrong(promtool: str) -> None:
    checked = ran(promtool, "check", "rules", "--lint=all", "--lint-fatal", str(FILE))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_rule_fires_where_it_should_and_stays_quiet_where_not(promtool: str, tmp_path: Path) -> None:
    files = []
    for rule in RULES:  # each by itself: all of them at every minute of every case take half a minute
        name, of_rule = rule["alert"], tmp_path / f"{rule['alert']}.rule.yaml"
        of_rule.write_text(yaml.safe_dump({"groups": [{"name": name, "rules": [rule]}]}), encoding="utf-8")
        cases = [case for key, case in prometheus_rule_cases.CASES.items() if key.partition(",")[0] == name]
        made = [test for case in cases for test in prometheus_rule_cases.tests(name, case)]
        files.append(tmp_path / f"{name}.case.yaml")
        files[-1].write_text(yaml.safe_dump({"rule_files": [str(of_rule)], "evaluation_interval": "1m", "tests": made}), encoding="utf-8")
    tested = ran(promtool, "test", "rules", *map(str, files))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_every_rule_has_a_case() -> None:
    assert {name.partition(",")[0] for name in prometheus_rule_cases.CASES} == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_a_rule_says_how_bad_it_is_since_when_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert re.fullmatch(r"\d+[mh]", rule["for"])
    told = rule["annotations"]
    assert "$labels.instance" in told["summary"]
    assert re.search(r"docs/observing\.md#[a-z-]+$", told["description"])


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Family]:
    return dict(observe_faces.names(observe_faces.faces(tmp_path_factory.mktemp("data"))))


def test_rules_and_their_cases_name_metrics_and_labels_that_there_are(metrics: dict[str, Family]) -> None:
    texts = [rule["expr"] for rule in RULES]
    texts += [series for case in prometheus_rule_cases.CASES.values() for half in case[:2] for series in half]
    for text in texts:
        for name, matchers in re.findall(r"\b((?:leverwatch|process)_\w+)(?:\{([^}]*)\})?", text):
            known = metrics.get(name) or next((metrics[name.removesuffix(part)] for part in PARTS if name.endswith(part)), None)
            assert known is not None, name
            asked = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
            assert asked <= {*observe_faces.labels(known), *OF_A_TARGET}, (name, asked)


def test_labels_that_a_summary_names_are_those_that_the_rule_keeps(metrics: dict[str, Family]) -> None:
    for rule in RULES:
        kept = {label for group in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in group.split(", ")}
        if not kept:
            names = re.findall(r"\b(?:leverwatch|process)_\w+", rule["expr"])
            kept = {label for name in names for label in observe_faces.labels(metrics[name])} | {"instance"}
        shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        assert shown <= kept | {"instance"}, rule["alert"]
