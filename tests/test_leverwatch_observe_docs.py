"""docs/observing.md has every metric that `/metrics` has, and every alert rule, as the code and the file say them."""

from __future__ import annotations

import re
from pathlib import Path

import observe_faces
import pytest
import yaml
from prometheus_client.metrics_core import Metric as Family

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/observing.md"
METRICS = "<!-- Every metric, made from the code by `make golden`. -->"
RULES = "<!-- Every alert rule, made from deploy/prometheus-rules.yaml by `make golden`. -->"
END = "<!-- end -->"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Family]]:
    return observe_faces.faces(tmp_path_factory.mktemp("data"))


def between(mark: str, made: str, *, is_update: bool) -> None:
    """Holds what stands behind a mark against what was made, or writes it there."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(f"{mark}\n")
    shown, _, tail = rest.partition(END)
    if is_update:
        PAGE.write_text(f"{head}{mark}\n\n{made}\n{END}{tail}", encoding="utf-8")
    else:
        assert shown == f"\n{made}\n", "run `make golden`"


def test_the_table_of_metrics_is_the_one_that_the_processes_make(found: dict[str, list[Family]], update_golden: bool) -> None:
    between(METRICS, observe_faces.table(found), is_update=update_golden)


def test_the_table_of_rules_is_that_of_the_file(update_golden: bool) -> None:
    lines = ["| rule | severity | after | fires where |", "|---|---|---|---|"]
    for group in yaml.safe_load((ROOT / "deploy/prometheus-rules.yaml").read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            asked = " ".join(rule["expr"].split()).replace("|", "\\|")
            lines.append(f"| `{rule['alert']}` | {rule['labels']['severity']} | {rule['for']} | `{asked}` |")
    between(RULES, "\n".join(lines) + "\n", is_update=update_golden)


def test_a_metrics_name_says_its_unit_and_what_it_counts(found: dict[str, list[Family]]) -> None:
    for name, family in observe_faces.names(found):
        assert re.fullmatch(r"(leverwatch|process)_[a-z0-9_]+", name), name
        assert family.documentation.endswith("."), name
        is_time = re.search(r"[Ss]econds", family.documentation) is not None
        assert not is_time or "seconds" in name, name
        assert "job" not in observe_faces.labels(family), f"{name}: Prometheus has a label job of its own"


def test_no_metric_has_two_meanings(found: dict[str, list[Family]]) -> None:
    meanings: dict[str, set[tuple[str, tuple[str, ...], str]]] = {}
    for name, family in observe_faces.names(found):
        meanings.setdefault(name, set()).add((family.type, observe_faces.labels(family), family.documentation))
    assert {name: said for name, said in meanings.items() if len(said) > 1} == {}


def test_the_page_says_of_every_rule_what_to_do() -> None:
    head = PAGE.read_text(encoding="utf-8").partition("## Every rule")[0]
    groups = yaml.safe_load((ROOT / "deploy/prometheus-rules.yaml").read_text(encoding="utf-8"))["groups"]
    assert [rule["alert"] for group in groups for rule in group["rules"] if f"`{rule['alert']}`" not in head] == []


def test_every_description_leads_to_a_heading_of_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    anchors = {re.sub(r"[^a-z0-9 -]", "", line.lower()).strip().replace(" ", "-") for line in re.findall(r"^#+ (.+)$", page, re.M)}
    told = re.findall(r"docs/observing\.md#([a-z0-9-]+)", (ROOT / "deploy/prometheus-rules.yaml").read_text(encoding="utf-8"))
    assert told
    assert set(told) <= anchors
