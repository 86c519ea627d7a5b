"""Spans and families in, OTLP out by opentelemetry-sdk. Imported where an endpoint is named, and nowhere else.

Nothing here waits: spans go into a bounded queue, which loses the oldest, and both signals are sent by threads of their own.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from opentelemetry import trace
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, Status, StatusCode
from prometheus_client.metrics_core import Metric as Family

from collectors.own import SERVICE
from leverwatch.observe import points
from leverwatch.observe.outage import LastWords, Outage
from leverwatch.observe.tracing import NOTHING, Kind, Mark, Tracing, Value
from leverwatch.observe_settings import Observe, address_of
from leverwatch.version import __version__

TIMEOUT_S, CLOSE_S = 5.0, 2.0
MOST_WAITING, SENT_TOGETHER, SENT_EVERY_MS = 4096, 512, 2000
PASSED_OVER = "leverwatch.passed_over"
KINDS: Mapping[Kind, SpanKind] = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
Families = Callable[[], Iterable[Family]]


class OtlpTracing(Tracing):
    """Sends spans and metrics to an endpoint. `close` ends it; what the endpoint has not taken by then is lost."""

    is_on = True

    def __init__(self, asked: Observe, process: str, families: Families) -> None:
        words = LastWords()
        words.listen()
        self._outage = Outage(asked.endpoint, words)
        self._ratio = asked.export_ratio
        self._random = random.Random()  # noqa: S311 - which exports are looked at is no secret
        resource = Resource.create(
            {"service.name": SERVICE, "service.version": __version__, "service.instance.id": str(uuid4()), "leverwatch.process": process}
        )
        self._provider = TracerProvider(resource=resource, sampler=ALWAYS_ON, shutdown_on_exit=False)
        if asked.traces:
            self._provider.add_span_processor(_worthwhile(_Told(_span_exporter(asked), self._outage)))
        self._tracer = self._provider.get_tracer(SERVICE, __version__) if asked.traces else trace.NoOpTracer()
        self._pushing = _Pushing(asked, resource, families, self._outage) if asked.metrics else None

    @property
    def failed_sendings(self) -> Mapping[str, int]:  # type: ignore[override]  # read there as a value
        """How many sendings failed, by signal."""
        return self._outage.failed.copy()

    @contextmanager
    def span(self, name: str, kind: Kind = "internal", facts: Mapping[str, Value] = NOTHING) -> Iterator[Mark]:
        """A span for as long as the block runs."""
        span = self._tracer.start_span(name, kind=KINDS[kind], attributes=dict(facts))
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            yield _OpenMark(span)

    def told(self, name: str, elapsed_s: float, kind: Kind, facts: Mapping[str, Value], error_type: str = "") -> None:
        """A span of what has just ended."""
        now_ns = time.time_ns()
        span = self._tracer.start_span(name, kind=KINDS[kind], attributes=dict(facts), start_time=now_ns - int(elapsed_s * 1e9))
        if error_type:
            _OpenMark(span).fail(error_type)
        span.end(now_ns)

    def wants_export(self) -> bool:
        """Whether the export that has just been received is one of those that get a span."""
        return self._random.random() < self._ratio

    def ids(self) -> tuple[str, str] | None:
        """The ids of trace and span that are open here, in hex."""
        context = trace.get_current_span().get_span_context()
        return (trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)) if context.is_valid else None

    def close(self) -> None:
        """Sends what waits, for a moment at most: a dead endpoint keeps no server from ending."""
        if self._pushing is not None:
            self._pushing.stop()
        ending = threading.Thread(target=self._provider.shutdown, name="observe-end", daemon=True)
        ending.start()
        ending.join(CLOSE_S)


class _OpenMark(Mark):
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def say(self, **facts: Value) -> None:
        self._span.set_attributes({f"leverwatch.{name}": value for name, value in facts.items()})

    def state(self, facts: Mapping[str, Value]) -> None:
        self._span.set_attributes(dict(facts))

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, error_type: str) -> None:
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR))

    def pass_over(self) -> None:
        self._span.set_attribute(PASSED_OVER, True)


class _Worthwhile(BatchSpanProcessor):
    """Queues spans, but for those of which nothing is to be told."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queues one."""
        if not (span.attributes or {}).get(PASSED_OVER):
            super().on_end(span)


class _Told(SpanExporter):
    """An exporter whose failures are noted."""

    def __init__(self, exporter: SpanExporter, outage: Outage) -> None:
        self._exporter, self._outage = exporter, outage

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends spans; False where they were not taken."""
        result = self._exporter.export(spans)
        self._outage.note("traces", is_sent=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        """Ends it."""
        self._exporter.shutdown()


class _Pushing:
    """The thread that sends what `/metrics` has."""

    def __init__(self, asked: Observe, resource: Resource, families: Families, outage: Outage) -> None:
        self._exporter, self._every_s = _metric_exporter(asked), asked.metrics_interval_s
        self._resource, self._scope = resource, InstrumentationScope(SERVICE, __version__)
        self._families, self._outage, self._since_ns = families, outage, time.time_ns()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._push_forever, name="observe-metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it after the sending in hand."""
        self._stop.set()
        self._thread.join(CLOSE_S)

    def _push_forever(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                data = points.metrics(self._families(), self._resource, self._scope, self._since_ns, time.time_ns())
                result = self._exporter.export(data, timeout_millis=TIMEOUT_S * 1000)
            except Exception:  # a table that cannot be read now: the thread goes on
                self._outage.note("metrics", is_sent=False)
            else:
                self._outage.note("metrics", is_sent=result is MetricExportResult.SUCCESS)
        self._exporter.shutdown()


def _worthwhile(exporter: SpanExporter) -> BatchSpanProcessor:
    return _Worthwhile(exporter, MOST_WAITING, SENT_EVERY_MS, SENT_TOGETHER, TIMEOUT_S * 1000)


def _span_exporter(asked: Observe) -> SpanExporter:
    if asked.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        return Grpc(**_grpc(asked))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

    return Http(endpoint=f"{asked.endpoint.rstrip('/')}/v1/traces", timeout=TIMEOUT_S)


def _metric_exporter(asked: Observe) -> MetricExporter:
    if asked.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as Grpc

        return Grpc(**_grpc(asked))
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as Http

    return Http(endpoint=f"{asked.endpoint.rstrip('/')}/v1/metrics", timeout=TIMEOUT_S)


def _grpc(asked: Observe) -> dict[str, Any]:
    return {"endpoint": asked.endpoint, "insecure": address_of(asked.endpoint).scheme == "http", "timeout": TIMEOUT_S}
