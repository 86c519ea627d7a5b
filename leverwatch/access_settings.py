"""The parts of the configuration that say who may do what, and what the deployment is: frozen structs, each key with its meaning."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from leverwatch.described import says

Port = Literal["grpc", "otlp_http", "web"]
Hashed = Literal["tenant", "request_id"]


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One secret that opens a door: exactly one of the three keys says where it stands."""

    token: Annotated[str, says("the token itself, 16 characters at least")] = ""
    token_file: Annotated[str, says("a file that holds the token; blanks around it do not count")] = ""
    token_env: Annotated[str, says("the environment variable that holds the token")] = ""


class Access(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may send, read and change. A door without a token is open on loopback, and is not opened beyond it."""

    ingest: Annotated[tuple[Token, ...], says("tokens that may send: OTLP, `POST /v1/requests`, `POST /api/evaluations`")] = ()
    read: Annotated[tuple[Token, ...], says("tokens that may read: pages, reports, SQL, verdicts, `/metrics`, `/docs`")] = ()
    admin: Annotated[tuple[Token, ...], says("tokens that may read, send and change state: silences, replays, snapshots")] = ()


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Encryption on every port. The files are read again when they change."""

    cert_file: Annotated[str, says("the certificate and what lies between it and its authority, PEM; empty: no TLS")] = ""
    key_file: Annotated[str, says("the certificate's private key, PEM, without a passphrase")] = ""
    client_ca_file: Annotated[str, says("authorities, PEM; a client has to show a certificate of one of them (mTLS)")] = ""
    client_ca_ports: Annotated[tuple[Port, ...], says("the ports that ask for a client's certificate")] = ("grpc", "otlp_http", "web")


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the tenant stands, and which ids are stored as keyed hashes only."""

    tenant_from: Annotated[tuple[str, ...], says("attributes that name the tenant where `leverwatch.tenant` does not; the first wins")] = (
        "tenant",
        "tenant.id",
        "user.id",
    )
    hash: Annotated[tuple[Hashed, ...], says("ids that are replaced by a keyed hash before they are stored")] = ()
    hash_key_file: Annotated[str, says("the file with the hash's key, 16 bytes at least; needed where `hash` names anything")] = ""
    hash_attributes: Annotated[tuple[str, ...], says("more attributes to hash where the tenant is; `*` stands for anything")] = (
        "enduser.*",
        "user.*",
        "langfuse.user.id",
        "session.id",
    )


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What replicas are and were, beside what they say themselves."""

    file: Annotated[str, says("CSV with the header `replica,from_time,until_time,key,value`; read again when it changes")] = ""


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one link of a topology can carry."""

    peak_bytes_per_s: Annotated[float, msgspec.Meta(gt=0), says("in one direction, per replica")]
    topology: Annotated[str, says("such as `pd-1p2d`; empty: any")] = ""
    hardware: Annotated[str, says("such as `h200`; empty: any")] = ""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a GPU costs from a time on."""

    hardware: Annotated[str, says("such as `h200`")]
    usd_per_gpu_hour: Annotated[float, msgspec.Meta(ge=0), says("what one GPU costs an hour")]
    from_time: Annotated[str, says("ISO 8601, without an offset UTC; empty: always")] = ""
