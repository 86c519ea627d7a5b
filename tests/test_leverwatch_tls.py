"""TLS on every port: clear errors, client certificates, files read again when they change."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest
import trustme

from leverwatch.access_settings import Tls
from leverwatch.tls import Certificates, TlsError, certificates


class Authority:
    """An authority, and files with what it issued."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder, self.issuer = folder, trustme.CA()
        self.file = folder / f"{name}.pem"
        self.issuer.cert_pem.write_to_path(str(self.file))

    def issue(self, name: str) -> tuple[str, str]:
        issued = self.issuer.issue_cert("127.0.0.1", "localhost", common_name=name)
        paths = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        paths[0].write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(str(paths[1]))
        return str(paths[0]), str(paths[1])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


class Listening:
    """A socket that shakes hands and closes."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.context = context
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self.listener.accept()
            except OSError:
                return
            with suppress(OSError), accepted, self.context.wrap_socket(accepted, server_side=True) as wrapped:
                wrapped.sendall(b"hello")

    def certificate(self, authority: Authority, pair: tuple[str, str] | None = None, name: str | None = "localhost") -> bytes | None:
        """The certificate it shows, once it said hello; None where it lets nobody in."""
        context = ssl.create_default_context(cafile=str(authority.file))
        context.check_hostname = False
        if pair:
            context.load_cert_chain(*pair)
        with socket.create_connection(("127.0.0.1", self.port), 5) as plain:
            try:
                with context.wrap_socket(plain, server_hostname=name) as wrapped:
                    shown = wrapped.getpeercert(binary_form=True)
                    return shown if wrapped.recv(5) == b"hello" else None
            except OSError:
                return None


@pytest.fixture
def listening() -> Iterator[list[Listening]]:
    opened: list[Listening] = []
    yield opened
    for one in opened:
        one.listener.close()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cert_file": ""}, r"\[tls\] cert_file is missing; cert_file and key_file are taken together"),
        ({"key_file": ""}, r"\[tls\] key_file is missing"),
        ({"cert_file": "/nowhere.crt"}, r"\[tls\] cert_file /nowhere.crt: No such file"),
        ({"key_file": "other.key"}, "the key does not fit the certificate"),
        ({"cert_file": "text"}, "no PEM certificate and key"),
        ({"client_ca_file": "text"}, r"\[tls\] client_ca_file .*text: no PEM certificates"),
        ({"key_file": "locked.key"}, "the key has a passphrase"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_file(shared: Authority, change: dict[str, str], told: str) -> None:
    from cryptography.hazmat.primitives import serialization

    cert, key = shared.issue("server")
    shared.issue("other")
    (shared.folder / "text").write_text("no PEM")
    plain = serialization.load_pem_private_key(Path(key).read_bytes(), None)
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (shared.folder / "locked.key").write_bytes(plain.private_bytes(*form, serialization.BestAvailableEncryption(b"secret")))
    named = {"cert_file": cert, "key_file": key} | {
        name: str(shared.folder / file) if file and not file.startswith("/") else file for name, file in change.items()
    }
    with pytest.raises(TlsError, match=told):
        certificates(Tls(**named))


def test_nothing_named_is_no_tls() -> None:
    assert certificates(Tls()) is None


def test_a_changed_certificate_is_shown_at_the_next_handshake(authority: Authority, listening: list[Listening]) -> None:
    tls = Tls(*authority.issue("server"))
    served = Listening(Certificates(tls).context("web"))
    listening.append(served)
    first = served.certificate(authority)
    assert first is not None
    assert served.certificate(authority, name=None) == first
    authority.issue("server")
    second = served.certificate(authority)
    assert second not in (None, first)
    assert served.certificate(authority, name=None) == second


def test_a_broken_change_is_said_and_the_old_certificate_stays(
    authority: Authority, listening: list[Listening], caplog: pytest.LogCaptureFixture
) -> None:
    tls = Tls(*authority.issue("server"))
    served = Listening(Certificates(tls).context("web"))
    listening.append(served)
    first = served.certificate(authority)
    Path(tls.key_file).write_text("half a key")
    with caplog.at_level(logging.WARNING, "leverwatch"):
        assert served.certificate(authority) == first
    assert "the certificates stay as they were: [tls] cert_file" in caplog.text


def test_a_port_that_asks_lets_in_certificates_of_its_authority_alone_also_of_a_new_one(
    authority: Authority, listening: list[Listening]
) -> None:
    (authority.folder / "other").mkdir()
    other = Authority(authority.folder / "other")
    known = Certificates(Tls(*authority.issue("server"), str(authority.file), ("grpc", "web")))
    asks, open_to_all = Listening(known.context("web")), Listening(known.context("otlp_http"))
    listening += [asks, open_to_all]
    mine, foreign = authority.issue("client"), other.issue("client")
    assert asks.certificate(authority) is None
    assert asks.certificate(authority, foreign) is None
    assert asks.certificate(authority, mine) is not None
    assert open_to_all.certificate(authority) is not None
    old = Path(authority.folder / "old.pem")
    old.write_bytes(authority.file.read_bytes())
    authority.file.write_bytes(other.file.read_bytes())
    authority.file = old
    assert asks.certificate(authority, foreign) is not None
    assert asks.certificate(authority, mine) is None


def test_grpc_asks_for_certificates_and_takes_changed_ones(authority: Authority) -> None:
    tls = Tls(*authority.issue("server"), str(authority.file))
    client = authority.issue("client")
    root = authority.file.read_bytes()

    async def run() -> list[bool]:
        server = grpc.aio.server()
        known = Certificates(tls)
        port = server.add_secure_port("127.0.0.1:0", known.grpc_credentials())
        await server.start()

        async def gets_in(pair: tuple[str, str] | None) -> bool:
            key, cert = (Path(pair[1]).read_bytes(), Path(pair[0]).read_bytes()) if pair else (None, None)
            shown = grpc.ssl_channel_credentials(root, key, cert)
            async with grpc.aio.secure_channel(f"localhost:{port}", shown) as channel:
                try:
                    await asyncio.wait_for(channel.channel_ready(), 30 if pair else 1)
                except TimeoutError:
                    return False
                return True

        found = [await gets_in(client), await gets_in(None)]
        authority.issue("server")
        before = known._pem
        found += [await gets_in(client), known._pem is not before]
        await server.stop(0)
        return found

    assert asyncio.run(run()) == [True, False, True, True]
