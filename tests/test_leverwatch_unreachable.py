"""What a client is told when a server cannot be asked: over TLS the error names the setting that is missing."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvicorn

from leverwatch.connection import ConnectError
from leverwatch.credentials import Credentials
from leverwatch.remote import Remote

STARTED_S = 10.0


async def _answers(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


class Serving:
    """A server on a free port, with or without TLS, until it is closed."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.bound = socket.create_server(("127.0.0.1", 0))
        tls = {"ssl_context_factory": lambda *_: context} if context else {}
        self.server = uvicorn.Server(uvicorn.Config(_answers, log_level="critical", lifespan="off", **tls))
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve([self.bound])), daemon=True)
        self.thread.start()
        until_s = time.monotonic() + STARTED_S
        while not self.server.started and time.monotonic() < until_s:
            time.sleep(0.01)
        self.where = f"127.0.0.1:{self.bound.getsockname()[1]}"

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(STARTED_S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("authority")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(made / "ca.pem"))
    for name in ("server", "client"):
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(made / f"{name}.pem"))
    authority.issue_cert("leverwatch.example").private_key_and_cert_chain_pem.write_to_path(str(made / "named.pem"))
    return made


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[dict[str, Serving]]:
    contexts: dict[str, ssl.SSLContext | None] = {"plain": None}
    for name, file in (("tls", "server"), ("mtls", "server"), ("named", "named")):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{file}.pem")
        contexts[name] = context
    mutual = contexts["mtls"]
    assert mutual is not None
    mutual.load_verify_locations(folder / "ca.pem")
    mutual.verify_mode = ssl.CERT_REQUIRED
    running = {name: Serving(context) for name, context in contexts.items()}
    yield running
    for one in running.values():
        one.close()


@pytest.mark.parametrize(
    ("server", "scheme", "trusts", "told"),
    [
        ("tls", "https", False, "--ca-file FILE or $LEVERWATCH_CA_FILE takes the authority"),
        ("tls", "http", False, "an address that begins with https:// is taken"),
        ("plain", "https", True, "the port speaks no TLS: an address that begins with http:// is taken"),
        ("mtls", "https", True, "$LEVERWATCH_CLIENT_CERT_FILE and $LEVERWATCH_CLIENT_KEY_FILE take one"),
        ("named", "https", True, "ask for it by a name that its certificate bears"),
    ],
)
def test_a_refusal_over_tls_names_what_is_missing(
    servers: dict[str, Serving], folder: Path, server: str, scheme: str, trusts: bool, told: str
) -> None:
    shown = Credentials(ca_file=str(folder / "ca.pem") if trusts else "")
    with Remote(f"{scheme}://{servers[server].where}", credentials=shown) as remote, pytest.raises(ConnectError) as refused:
        remote.report()
    assert told in str(refused.value)


def test_a_port_without_a_server_asks_whether_one_runs() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # taken, and nobody listens
        with (
            Remote(f"http://127.0.0.1:{bound.getsockname()[1]}") as remote,
            pytest.raises(ConnectError, match=r"is `leverwatch serve` running"),
        ):
            remote.report()


def test_with_its_certificate_a_client_is_let_in(servers: dict[str, Serving], folder: Path) -> None:
    shown = Credentials(ca_file=str(folder / "ca.pem"), cert_file=str(folder / "client.pem"))
    with Remote(f"https://{servers['mtls'].where}", credentials=shown) as remote:
        assert remote.doctor() == {}
