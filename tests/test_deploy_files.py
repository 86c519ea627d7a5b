"""The ready-made configurations can be read, name only what exists, and start the engines as docs/engines.md says."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from leverwatch.cli import main as command_line

DEPLOY = Path(__file__).parents[1] / "deploy"
SCRIPTS = sorted(DEPLOY.glob("*/*.sh"))
COMPONENTS = {
    "extensions": {"file_storage"},
    "receivers": {"otlp"},
    "processors": {"memory_limiter", "k8sattributes", "resource"},
    "exporters": {"otlp"},
}
EXPORTER_KEYS = {"endpoint", "tls", "headers", "timeout", "retry_on_failure", "sending_queue"}
RETRY_KEYS = {"enabled", "initial_interval", "max_interval", "max_elapsed_time", "multiplier", "randomization_factor"}
QUEUE_KEYS = {"enabled", "num_consumers", "wait_for_result", "block_on_overflow", "sizer", "queue_size", "storage", "batch"}
FACTS = re.compile(
    r"leverwatch\.(model|tenant|route|replica|pool|hardware|topology|gpus|link_peak_bytes_per_s|lever\.\w+|arm\.\w+|dialect)$"
)


def read(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.yaml")), ids=lambda path: path.name)
def test_every_yaml_file_can_be_read(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_each_pipeline_of_the_collector_uses_what_is_set_up_and_sends_to_leverwatch() -> None:
    collector = read("collector.yaml")
    for kind, names in COMPONENTS.items():
        assert set(collector[kind]) == names
    assert set(collector["service"]["pipelines"]) == {"traces", "metrics", "logs"}
    for pipeline in collector["service"]["pipelines"].values():
        assert pipeline["processors"][0] == "memory_limiter"
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= COMPONENTS[kind]
        assert pipeline["exporters"] == ["otlp"]
    assert collector["service"]["extensions"] == [collector["exporters"]["otlp"]["sending_queue"]["storage"]]


def test_the_collector_retries_for_ever_from_a_queue_on_disk_and_samples_nothing() -> None:
    collector = read("collector.yaml")
    exporter = collector["exporters"]["otlp"]
    assert set(exporter) <= EXPORTER_KEYS
    assert set(exporter["retry_on_failure"]) <= RETRY_KEYS
    assert set(exporter["sending_queue"]) <= QUEUE_KEYS
    assert exporter["retry_on_failure"]["max_elapsed_time"] == "0s"
    assert exporter["sending_queue"]["block_on_overflow"]
    assert not [name for name in collector["processors"] if "sampl" in name]


def test_pod_labels_become_deployment_facts_that_are_read() -> None:
    collector = read("collector.yaml")
    names = [label["tag_name"] for label in collector["processors"]["k8sattributes"]["extract"]["labels"]]
    assert names
    assert [name for name in names if not FACTS.match(name)] == []


def test_prometheus_asks_where_leverwatch_answers() -> None:
    (job,) = read("prometheus.yaml")["scrape_configs"]
    assert set(job) <= {"job_name", "metrics_path", "scrape_interval", "static_configs", "authorization"}
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"] == [{"targets": ["leverwatch:8080"]}]


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / "leverwatch.service").read_text(encoding="utf-8"))
    return parser


def test_the_unit_starts_serve_with_options_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    words = unit()["Service"]["ExecStart"].split()
    assert words[1] == "serve"
    with pytest.raises(SystemExit):
        command_line.main(["serve", "--help"])
    told = capsys.readouterr().out
    assert [word for word in words if word.startswith("--") and word not in told] == []


def test_the_unit_waits_longer_for_the_end_than_serve_takes() -> None:
    service = unit()["Service"]
    assert service["KillSignal"] == "SIGTERM"
    assert int(service["TimeoutStopSec"].removesuffix("s")) > 15
    assert service["StateDirectory"] == "leverwatch"
    assert "--data /var/lib/leverwatch" in service["ExecStart"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_knows_every_key_of_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "leverwatch.service").read_text(encoding="utf-8")
    path = tmp_path / "leverwatch.service"
    path.write_text(re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", text), encoding="utf-8")
    told = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True, check=False).stderr
    assert [line for line in told.splitlines() if "leverwatch.service" in line and "Unknown" in line] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}")
def test_every_script_is_sound_shell_and_may_be_run(script: Path) -> None:
    subprocess.run(["sh", "-n", script], check=True)
    assert os.access(script, os.X_OK)


def started(tmp_path: Path, script: str, program: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """What a script starts in place of an engine: the arguments and the variables that it gives it."""
    stand_in = tmp_path / program
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\necho --\nenv\n', encoding="utf-8")
    stand_in.chmod(0o755)
    plain = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run([DEPLOY / "engines" / script, *arguments], env=plain, capture_output=True, text=True, check=True)
    words, _, variables = done.stdout.partition("\n--\n")
    return words.splitlines(), dict(line.split("=", 1) for line in variables.splitlines() if "=" in line)


def test_vllm_is_told_where_its_spans_go_and_what_it_serves(tmp_path: Path) -> None:
    words, variables = started(tmp_path, "vllm.sh", "vllm", "org/model", "--tensor-parallel-size", "2")
    assert words == ["serve", "org/model", "--tensor-parallel-size", "2", "--otlp-traces-endpoint", "http://127.0.0.1:4317"]
    assert variables["OTEL_SERVICE_NAME"] == "vllm"
    assert re.fullmatch(r"service\.instance\.id=.+,leverwatch\.model=org/model", variables["OTEL_RESOURCE_ATTRIBUTES"])


def test_sglang_traces_to_a_host_and_port_without_scheme(tmp_path: Path) -> None:
    words, _ = started(tmp_path, "sglang.sh", "python", "--model-path", "m")
    assert words[:4] == ["-m", "sglang.launch_server", "--model-path", "m"]
    assert words[4:7] == ["--enable-trace", "--otlp-traces-endpoint", "127.0.0.1:4317"]


def test_trtllm_gets_the_option_without_which_it_sends_nothing(tmp_path: Path) -> None:
    words, _ = started(tmp_path, "trtllm.sh", "trtllm-serve", "m")
    assert words[:3] == ["m", "--otlp_traces_endpoint", "http://127.0.0.1:4317"]
    assert yaml.safe_load(Path(words[-1]).read_text(encoding="utf-8")) == {"return_perf_metrics": True}


def test_dynamo_sends_all_spans_and_its_request_trace(tmp_path: Path) -> None:
    words, variables = started(tmp_path, "dynamo.sh", "worker", "worker", "--model", "m")
    assert words == ["--model", "m"]
    assert (variables["DYN_LOGGING_JSONL"], variables["OTEL_EXPORT_ENABLED"]) == ("true", "1")
    assert (variables["DYN_REQUEST_TRACE"], variables["DYN_REQUEST_TRACE_SINKS"]) == ("1", "otel")
    assert float(variables["OTEL_TRACES_SAMPLE_RATIO"]) == 1


def test_llm_d_exports_to_otlp_and_leaves_no_request_out(tmp_path: Path) -> None:
    words, variables = started(tmp_path, "llm-d.sh", "epp", "epp", "--v=2")
    assert words == ["--v=2", "--tracing=true"]
    assert variables["OTEL_TRACES_EXPORTER"] == "otlp"
    assert (variables["OTEL_TRACES_SAMPLER"], variables["OTEL_TRACES_SAMPLER_ARG"]) == ("parentbased_traceidratio", "1")
