"""Of the mutants of `pipeline/` and `alerts/` that tests try, in functions drawn by chance, nearly all are noticed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "mutation.py"
FUNCTIONS, SEED = (os.environ.get(f"LEVERWATCH_TEST_MUTATION_{name}", usual) for name, usual in (("FUNCTIONS", "40"), ("SEED", "2")))
LEAST_SHARE = 0.8


@pytest.fixture(scope="module")
def mutation() -> ModuleType:
    """The script as a module."""
    found = importlib.util.spec_from_file_location("mutation", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_functions_are_named_as_the_tool_names_them_and_decorated_ones_are_left_out(mutation: ModuleType) -> None:
    names = set(mutation.functions())
    assert "pipeline.assemble.x_assemble" in names
    assert any(name.startswith("alerts.around.xǁAroundǁ") for name in names)
    assert not [name for name in names if name.startswith("collectors.")]


def test_a_share_is_of_what_tests_tried(mutation: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    ends = {"pipeline.a.x_f__mutmut_1": "killed", "pipeline.a.x_f__mutmut_2": "survived", "pipeline.b.x_g__mutmut_1": "no tests"}
    assert mutation.told(ends) == {"killed_share": 0.5, "tried": 2, "killed": 1, "survived": 1, "no tests": 1}
    assert "2 mutants tried, 1 survived" in capsys.readouterr().out


@pytest.mark.long
def test_most_changes_of_a_line_are_noticed(tmp_path: Path) -> None:
    out = tmp_path / "mutation.json"
    command = [sys.executable, str(SCRIPT), "--functions", FUNCTIONS, "--seed", SEED, "--folder", str(tmp_path / "copy"), "--out", str(out)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    sys.stdout.write(told.stdout)
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["tried"] > 100
    assert found["killed_share"] >= LEAST_SHARE, found["survived_mutants"]
