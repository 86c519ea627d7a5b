"""`[observe]` and the addresses that a process listens on in, where its spans and metrics go out: nowhere unless an endpoint is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import Metric as Family

from leverwatch.observe import logs, own_addresses
from leverwatch.observe.tracing import OFF, Tracing
from leverwatch.observe_settings import Observe

MISSING = "[observe] endpoint: spans and metrics are sent by opentelemetry-sdk, which is not installed: pip install 'leverwatch[observe]'"


class ObserveMissingError(ModuleNotFoundError):
    """What sends spans is not installed; says what to do."""


def refuse_own(asked: Observe, host: str, ports: Iterable[int]) -> None:
    """Refuses an endpoint that is one of our own addresses. Raises OwnIngestError."""
    if asked.endpoint:
        own_addresses.refuse(asked.endpoint, host, [port for port in ports if port])


def started(asked: Observe, process: str, families: Callable[[], Iterable[Family]]) -> Tracing:
    """What sends the spans of a process, and its `families`; what sends none where no endpoint is named.

    Raises:
        ObserveMissingError: an endpoint is named, and opentelemetry-sdk or its exporter is not installed.
    """
    if not asked.endpoint:
        return OFF
    try:
        from leverwatch.observe.sending import OtlpTracing

        tracing = OtlpTracing(asked, process, families)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise ObserveMissingError(MISSING) from error
    logs.show_ids(tracing.ids)
    return tracing
