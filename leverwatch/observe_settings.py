"""`[observe]` of the configuration in; where Leverwatch sends what it says of itself, and how it writes its log, out."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec

from leverwatch.described import says

Protocol = Literal["grpc", "http"]
LogForm = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]


class Observe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What Leverwatch says of itself: spans and metrics over OTLP, which nobody gets unless an endpoint is named, and its log."""

    endpoint: Annotated[
        str,
        says("where its own spans and metrics go, such as `http://collector:4317`; empty: nowhere. Never its own receiver"),
    ] = ""
    protocol: Annotated[Protocol, says("OTLP over gRPC, or over HTTP with protobuf, which adds `/v1/traces` and `/v1/metrics`")] = "grpc"
    traces: Annotated[bool, says("send spans there")] = True
    metrics: Annotated[bool, says("send what `/metrics` has there")] = True
    metrics_interval_s: Annotated[float, msgspec.Meta(ge=1, le=3600), says("seconds from one sending of metrics to the next")] = 60.0
    export_ratio: Annotated[
        float, msgspec.Meta(ge=0, le=1), says("share of the exports received that get a span; jobs, deliveries and pages always have one")
    ] = 0.01
    log_format: Annotated[LogForm, says("how the log is written on standard error: lines of text, or one JSON object a line")] = "text"
    log_level: Annotated[LogLevel, says("what is logged: this, and what is worse")] = "warning"

    def __post_init__(self) -> None:
        if self.endpoint:
            address_of(self.endpoint)


def address_of(endpoint: str) -> SplitResult:
    """An endpoint's scheme, host and port.

    Raises:
        ValueError: it is no address with a port.
    """
    parts = urlsplit(endpoint)
    try:
        is_whole = parts.scheme in ("http", "https") and parts.hostname and parts.port and parts.path in ("", "/") and not parts.query
    except ValueError:
        is_whole = False
    if not is_whole or parts.username is not None:
        msg = f"[observe] endpoint = {shown(endpoint)!r}: http:// or https://, a host and a port are taken, such as http://collector:4317"
        raise ValueError(msg)
    return parts


def shown(endpoint: str) -> str:
    """An endpoint as it may be printed: without what stands before an `@`, which may be a password."""
    head, found, rest = endpoint.rpartition("@")
    return f"{head.partition('://')[0]}://...@{rest}" if found else endpoint
