"""Rotel, from PyPI, stands in front with the shipped configuration: real SDK spans pass through it and are stored once."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from test_leverwatch_serve import Running, send_vllm_span

SHIPPED = Path(__file__).parents[1] / "deploy" / "rotel.env"
UP_S = 10.0


def rotel_binary() -> Path:
    """The program that the package brings."""
    package = pytest.importorskip("rotel", reason="rotel is not installed (pip install rotel)")
    assert package.__file__
    path = Path(package.__file__).with_name("rotel-agent")
    started = subprocess.run([path, "version"], capture_output=True, text=True, check=False)
    if started.returncode:
        pytest.skip(f"rotel does not start here: {started.stderr.strip()}")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def shipped() -> dict[str, str]:
    """The variables of the shipped configuration."""
    lines = (line for line in SHIPPED.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path / "data")
    yield running
    running.end()


@pytest.fixture
def front(server: Running, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Rotel in front of the server, with the shipped configuration but for addresses; its own addresses."""
    addresses = {"grpc": f"127.0.0.1:{free_port()}", "http": f"127.0.0.1:{free_port()}"}
    variables = shipped() | {
        "ROTEL_OTLP_GRPC_ENDPOINT": addresses["grpc"],
        "ROTEL_OTLP_HTTP_ENDPOINT": addresses["http"],
        "ROTEL_OTLP_EXPORTER_ENDPOINT": f"http://{server.addresses['otlp_grpc']}",
    }
    with (tmp_path / "rotel.log").open("w", encoding="utf-8") as said:
        process = subprocess.Popen([rotel_binary(), "start"], env=os.environ | variables, stdout=said, stderr=said)
        await_port(process, int(addresses["http"].rpartition(":")[2]))
        yield addresses
        process.terminate()
        process.wait(10)


def await_port(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + UP_S
    while time.monotonic() < until:
        assert process.poll() is None, "rotel ended"
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.05)
    pytest.fail(f"rotel does not listen on port {port}")


def test_spans_that_pass_through_rotel_are_requests_once(server: Running, front: dict[str, str]) -> None:
    send_vllm_span(GrpcExporter(endpoint=front["grpc"], insecure=True), "through grpc")
    send_vllm_span(HttpExporter(endpoint=f"http://{front['http']}/v1/traces"), "through http")
    asked = "select request_id, model, prompt_tokens, output_tokens, round(tpot_s, 6) from requests order by request_id"
    server.wait_for(asked, [[name, "tiny", 582, 4, 0.02] for name in ("through grpc", "through http")])
    server.wait_for("select count(*), count(distinct (trace_id, span_id)) from spans", [[2, 2]])


def test_the_shipped_configuration_names_only_variables_that_rotel_knows() -> None:
    told = subprocess.run([rotel_binary(), "start", "--help"], capture_output=True, text=True, check=True).stdout
    assert [name for name in shipped() if f"[env: {name}=]" not in told] == []
