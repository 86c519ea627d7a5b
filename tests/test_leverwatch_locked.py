"""A whole server behind tokens and TLS: real exporters, commands through the folder and from afar, a server that will not start."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import trustme
from collectors_bodies import body, span
from grpc import ssl_channel_credentials
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from test_leverwatch_serve import Running, send_vllm_span

import leverwatch
from leverwatch.connection import ConnectError

INGEST, READ, ADMIN = "ingest-token-0001", "read-token-000001", "admin-token-00001"
CONFIG = """
[access]
ingest = [{{ token = "{ingest}" }}]
read = [{{ token_file = "{folder}/read" }}]
admin = [{{ token = "{admin}" }}]
[tls]
cert_file = "{folder}/server.pem"
key_file = "{folder}/server.pem"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("locked")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(made / "ca.pem"))
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(str(made / "server.pem"))
    (made / "read").write_text(READ + "\n")
    (made / "locked.toml").write_text(CONFIG.format(ingest=INGEST, admin=ADMIN, folder=made))
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    running = Running(folder / "data", "--config", str(folder / "locked.toml"))
    yield running
    status, errors = running.end()
    assert status == 0
    assert not any(token in errors for token in (INGEST, READ, ADMIN))


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LEVERWATCH_")}
    asked = [sys.executable, "-m", "leverwatch.cli.main", *words]
    return subprocess.run(asked, capture_output=True, text=True, timeout=60, env=environment, cwd=folder)


def exporter(server: Running, folder: Path, token: str) -> GrpcExporter:
    trusted = ssl_channel_credentials((folder / "ca.pem").read_bytes())
    return GrpcExporter(
        endpoint=f"https://{server.addresses['otlp_grpc']}", credentials=trusted, headers={"authorization": f"Bearer {token}"}
    )


def test_exporters_with_the_ingest_token_get_in_and_others_are_told_why(folder: Path, server: Running) -> None:
    send_vllm_span(exporter(server, folder, INGEST), "by grpc")
    with _client(folder) as client:
        at, kind = f"{server.addresses['otlp_http']}/v1/traces", {"content-type": "application/x-protobuf"}
        sent = [
            client.post(at, content=body(span(1)), headers=kind | ({"authorization": f"Bearer {token}"} if token else {}))
            for token in (INGEST, ADMIN, READ, "")
        ]
    assert [answer.status_code for answer in sent] == [200, 200, 403, 401]
    with leverwatch.connect(folder / "data") as local:
        refused = local.http.get("/metrics").text
    assert 'leverwatch_refused_calls_total{port="otlp_http",reason="forbidden"} 1' in refused


def _client(folder: Path) -> httpx.Client:
    from leverwatch.credentials import Credentials

    return httpx.Client(**Credentials(ca_file=str(folder / "ca.pem")).client())


@pytest.mark.parametrize(
    ("token", "code"), [("", "UNAUTHENTICATED"), ("wrong-token-00000", "UNAUTHENTICATED"), (READ, "PERMISSION_DENIED")]
)
def test_grpc_refuses_with_its_own_codes(folder: Path, server: Running, token: str, code: str) -> None:
    import grpc

    trusted = ssl_channel_credentials((folder / "ca.pem").read_bytes())
    with grpc.secure_channel(server.addresses["otlp_grpc"], trusted) as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        with pytest.raises(grpc.RpcError) as refused:
            export(body(span(1)), metadata=(("authorization", f"Bearer {token}"),) if token else (), timeout=10)
    assert refused.value.code().name == code


def test_commands_of_the_same_user_get_in_through_the_folder(folder: Path, server: Running) -> None:
    file = folder / "data" / "serve.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["pid"] == server.process.pid
    done = command(folder, "sql", "select 1 as one", "--data", str(folder / "data"), "--format", "json")
    assert json.loads(done.stdout)["rows"] == [[1]], done.stderr
    (folder / "export.pb").write_bytes(body(span(7)))
    loaded = command(folder, "load", str(folder / "export.pb"), "--data", str(folder / "data"))
    assert (loaded.returncode, loaded.stdout.split(",")[0]) == (0, "1 span stored"), loaded.stderr


def test_a_file_that_others_may_read_gives_no_secret(folder: Path, server: Running) -> None:
    file = folder / "data" / "serve.json"
    assert server.process.poll() is None
    file.chmod(0o644)
    try:
        done = command(folder, "sql", "select 1", "--data", str(folder / "data"))
    finally:
        file.chmod(0o600)
    assert done.returncode == 2
    assert "a token that may read is needed; --token-file or $LEVERWATCH_TOKEN takes one" in done.stderr


def test_commands_from_afar_show_a_token_and_check_the_certificate(folder: Path, server: Running) -> None:
    words = ["sql", "select 1 as one", "--url", server.addresses["url"], "--format", "json"]
    trusted = ["--ca-file", str(folder / "ca.pem")]
    assert json.loads(command(folder, *words, *trusted, "--token-file", "read").stdout)["rows"] == [[1]]
    assert "CERTIFICATE_VERIFY_FAILED" in command(folder, *words, "--token-file", "read").stderr
    (folder / "ingest").write_text(INGEST)
    assert "this token may ingest; this needs read" in command(folder, *words, *trusted, "--token-file", "ingest").stderr
    assert "token file nothing: No such file" in command(folder, *words, *trusted, "--token-file", "nothing").stderr


def test_the_python_client_takes_a_token_too(folder: Path, server: Running) -> None:
    with leverwatch.connect(server.addresses["url"], token=READ, ca_file=folder / "ca.pem") as far:
        assert far.sql("select 1").item() == 1
    with leverwatch.connect(server.addresses["url"], token="", ca_file=folder / "ca.pem") as far, pytest.raises(ConnectError):
        far.sql("select 1")


def test_no_file_of_the_store_holds_a_token(folder: Path, server: Running) -> None:
    assert server.process.poll() is None
    with leverwatch.connect(folder / "data") as local:
        local.http.get(f"/segment?token={READ}")
    for path in (folder / "data").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(token.encode() in content for token in (INGEST, READ, ADMIN)), path


def test_a_server_that_all_could_use_does_not_start_and_says_what_to_do(tmp_path: Path) -> None:
    done = command(tmp_path, "serve", "--data", str(tmp_path / "data"), "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "nothing guards pages and API, OTLP/gRPC, OTLP/HTTP" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_recordings_are_loaded_from_afar_by_who_may_send_and_read(folder: Path, server: Running) -> None:
    (folder / "afar.pb").write_bytes(body(span(9)))
    (folder / "admin").write_text(ADMIN)
    words = ["load", str(folder / "afar.pb"), "--url", server.addresses["url"], "--ca-file", str(folder / "ca.pem")]
    loaded = command(folder, *words, "--token-file", "admin")
    assert (loaded.returncode, loaded.stdout.split(",")[0]) == (0, "1 span stored"), loaded.stderr
    refused = command(folder, *words, "--token-file", "read")
    assert refused.returncode == 2
    assert "loading needs a token that may send and read" in refused.stderr
