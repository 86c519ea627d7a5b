"""A server that anyone on the network could use does not start, unless the configuration says so plainly."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from leverwatch.access import Tokens, resolve
from leverwatch.access_settings import Access, Port, Tls, Token
from leverwatch.config import Serve
from leverwatch.exposure import ExposedError, check, is_loopback
from leverwatch.tls import Certificates

SECRET = (Token(token="a-token-of-enough-characters"),)
BOTH, INGEST, READ = Access(ingest=SECRET, read=SECRET), Access(ingest=SECRET), Access(read=SECRET)


def certificates(folder: Path, *ports: Port) -> Certificates:
    authority = trustme.CA()
    authority.issue_cert("leverwatch.example").private_key_and_cert_chain_pem.write_to_path(str(folder / "pair.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    pair = str(folder / "pair.pem")
    return Certificates(Tls(pair, pair, str(folder / "ca.pem") if ports else "", ports or ("web",)))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True), ("127.5.5.5", True), ("::1", True), ("localhost", True), ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False), ("::", False), ("", False), ("10.0.0.1", False), ("::ffff:10.0.0.1", False), ("no.such.invalid", False),
    ],
)  # fmt: skip
def test_loopback_is_what_no_other_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def tokens(access: Access) -> Tokens:
    return resolve(access, {}).with_local("the secret of a run guards nothing")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.7"])
@pytest.mark.parametrize(
    ("access", "bare"), [(Access(), "pages and API, OTLP/gRPC, OTLP/HTTP"), (INGEST, "pages and API"), (READ, "OTLP/gRPC, OTLP/HTTP")]
)
def test_an_open_port_beyond_loopback_is_refused_by_name(host: str, access: Access, bare: str) -> None:
    with pytest.raises(ExposedError, match=rf"nothing guards {bare}: .*allow_open = true"):
        check(Serve(host=host), tokens(access), None)


def test_tokens_client_certificates_or_a_plain_word_open_it(tmp_path: Path) -> None:
    assert check(Serve(host="0.0.0.0"), tokens(BOTH), None) is None
    assert check(Serve(host="0.0.0.0", allow_open=True), Tokens(), None) is None
    assert check(Serve(host="0.0.0.0"), Tokens(), certificates(tmp_path, "grpc", "otlp_http", "web")) is None
    assert check(Serve(host="0.0.0.0"), tokens(READ), certificates(tmp_path, "grpc", "otlp_http")) is None
    assert check(Serve(), Tokens(), None) is None


def test_encryption_alone_guards_nothing(tmp_path: Path) -> None:
    with pytest.raises(ExposedError, match="nothing guards pages and API, OTLP/gRPC, OTLP/HTTP"):
        check(Serve(host="0.0.0.0"), Tokens(), certificates(tmp_path))
    with pytest.raises(ExposedError, match="nothing guards pages and API:"):
        check(Serve(host="0.0.0.0"), Tokens(), certificates(tmp_path, "grpc", "otlp_http"))
