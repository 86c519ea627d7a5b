"""The wheel, installed into an empty environment, carries its data and works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SPAN = {
    "traceId": "5b8efff798038103d269b633813fc60c",
    "spanId": "eee19b7ec3c1b174",
    "name": "llm_request",
    "kind": 2,
    "startTimeUnixNano": "1795956574545198566",
    "endTimeUnixNano": "1795956575545198566",
    "attributes": [
        {"key": "gen_ai.usage.prompt_tokens", "value": {"intValue": "7"}},
        {"key": "gen_ai.usage.completion_tokens", "value": {"intValue": "11"}},
        {"key": "gen_ai.latency.time_in_model_decode", "value": {"doubleValue": 0.5}},
    ],
}
EXPORT = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "vllm.tracing.otel"}, "spans": [SPAN]}]}]}


def run(*command: str | Path, at: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "LEVERWATCH"))}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, cwd=at, env=environment)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of console scripts of an environment that holds nothing but the wheel and what it asks for."""
    base = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", base, ROOT, at=base)
    (wheel,) = base.glob("leverwatch-*.whl")
    run(sys.executable, "-m", "venv", base / "venv", at=base)
    run(base / "venv" / "bin" / "pip", "install", "--quiet", wheel, at=base)
    return base / "venv" / "bin"


def test_an_installed_wheel_loads_an_export_and_reports_it(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(EXPORT), encoding="utf-8")
    leverwatch = scripts / "leverwatch"
    said = run(leverwatch, "load", "one.json", "--data", "store", at=tmp_path)
    assert said.startswith("1 span stored, 0 already there, 0 rejected")
    rows = json.loads(
        run(leverwatch, "report", "--data", "store", "--by", "engine", "--metrics", "tpot_s", "--format", "json", at=tmp_path)
    )
    tails = {"tpot_s_p50": 0.05, "tpot_s_p95": 0.05, "tpot_s_p99": 0.05}
    said = {"tpot_s_n": 1, "tpot_s_coverage": 1.0, "tpot_s_provenance": "span"}
    assert rows == [{"engine": "vllm", "requests": 1, "tpot_s": 0.05, **tails, **said}]
    answer = json.loads(run(leverwatch, "sql", "--data", "store", "select count(*) as n from spans", "--format", "json", at=tmp_path))
    assert answer["rows"] == [[1]]


def test_an_installed_wheel_knows_its_scenarios_and_policies(scripts: Path, tmp_path: Path) -> None:
    assert "batch-grows" in run(scripts / "leverwatch", "demo", "--list", at=tmp_path)
    assert "speculation" in run(scripts / "leverwatch", "policy", "list", at=tmp_path)
