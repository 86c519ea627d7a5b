"""Spans and metrics as a backend gets them; and that one that is dead, slow or not installed holds nothing up."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import observe_backend
import pytest
from observe_backend import Backend, facts
from prometheus_client.metrics_core import Metric as Family

from alerts.deliver import Tried
from collectors.door import Handled
from leverwatch.observe import starting
from leverwatch.observe.counts import Counts, Durations, Levels
from leverwatch.observe.observer import Observer
from leverwatch.observe.tracing import OFF
from leverwatch.observe_settings import Observe

DEAD = "http://127.0.0.1:9"  # discard: nobody listens


@pytest.fixture(autouse=True)
def _library_log() -> Iterator[None]:
    """The library's logger as it was."""
    library = logging.getLogger("opentelemetry")
    before, propagates = library.handlers, library.propagate
    yield
    library.handlers, library.propagate = before, propagates


def families() -> Iterator[Family]:
    counts, seconds = (
        Counts("leverwatch_things", "Things.", ("of",)),
        Durations("leverwatch_thing_seconds", "Seconds.", ("of",), (0.1, 1.0)),
    )
    level = Levels("leverwatch_level_bytes", "Bytes.", ())
    counts.add("a", n=3)
    for elapsed_s in (0.05, 0.5, 0.5, 7.0):
        seconds.add(elapsed_s, "a")
    level.put(12)
    yield from (counts.family(), seconds.family(), level.family())


def observer(backend: Backend, protocol: str = "grpc", **more: object) -> Observer:
    asked = Observe(endpoint=backend.endpoint, protocol=protocol, metrics_interval_s=1.0, **more)  # type: ignore[arg-type]
    return Observer(tracing=starting.started(asked, "serve", families))


@pytest.fixture(params=["grpc", "http"])
def protocol(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


BACKENDS: dict[str, Callable[[], AbstractContextManager[Backend]]] = {"grpc": observe_backend.over_grpc, "http": observe_backend.over_http}


def test_a_round_with_its_jobs_is_one_trace_and_says_who_sends_it(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "OTEL_SERVICE_NAME", "vllm"
    )  # of an engine on the same machine: by our own name our spans are known when they come back
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=vllm,deployment.environment.name=staging")
    with BACKENDS[protocol]() as backend:
        seen = observer(backend, protocol)
        with seen.round() as around, seen.job("load") as run:
            run.done = around.done = 5
        (job,), (whole,) = backend.named("job load"), backend.named("round")
        seen.tracing.close()
    assert job.trace_id == whole.trace_id
    assert job.parent_span_id == whole.span_id
    assert facts(job) == {"leverwatch.job": "load", "leverwatch.done": 5}
    assert (
        backend.resource().items()
        >= {"service.name": "leverwatch", "leverwatch.process": "serve", "deployment.environment.name": "staging"}.items()
    )
    assert {"service.version", "service.instance.id"} <= backend.resource().keys()


def test_rounds_in_which_nothing_was_done_are_not_told_and_a_failed_job_is_without_its_words() -> None:
    with observe_backend.over_grpc() as backend:
        seen = observer(backend)
        with seen.round(), seen.job("idle"):
            pass
        with seen.round() as around:
            around.done = 1
            with pytest.raises(ValueError, match="prompt text"), seen.job("judge"):
                raise ValueError("prompt text")
        (failed,) = backend.named("job judge")
        seen.tracing.close()
        assert [span.name for span in backend.spans()] == ["job judge", "round"]
    assert facts(failed)["error.type"] == "ValueError"
    assert failed.status.code == failed.status.STATUS_CODE_ERROR
    assert not failed.events
    assert b"prompt text" not in b"".join(backend.raw)


def test_metrics_are_those_of_the_page_counts_levels_and_histograms(protocol: str) -> None:
    with BACKENDS[protocol]() as backend:
        seen = observer(backend, protocol)
        things, seconds, level = (backend.metric(f"leverwatch_{name}") for name in ("things", "thing_seconds", "level_bytes"))
        seen.tracing.close()
    assert [(point.as_double, point.attributes[0].value.string_value) for point in things.sum.data_points] == [(3.0, "a")]
    assert things.sum.is_monotonic
    (point,) = seconds.histogram.data_points
    assert (list(point.bucket_counts), list(point.explicit_bounds), point.count, point.sum) == ([1, 2, 1], [0.1, 1.0], 4, 8.05)
    assert not point.HasField("min")
    assert (level.gauge.data_points[0].as_double, level.unit, seconds.unit) == (12.0, "By", "s")


def test_of_exports_the_asked_share_has_a_span_and_none_that_holds_own_spans() -> None:
    with observe_backend.over_grpc() as backend:
        every, never = observer(backend, export_ratio=1.0), observer(backend, export_ratio=0.0)
        never.handled(Handled("traces", "taken", 1, 10, 0.25))
        every.handled(Handled("traces", "taken", 7, 10, 0.25, is_own=True))
        every.handled(Handled("traces", "disk", 0, 10, 0.25))
        (told,) = backend.named("receive")
        for one in (every, never):
            one.tracing.close()
        assert len(backend.spans()) == 1
    assert facts(told).items() >= {"leverwatch.outcome": "disk", "error.type": "disk", "leverwatch.size_bytes": 10}.items()
    assert told.end_time_unix_nano - told.start_time_unix_nano == 250_000_000
    assert every.door.exports.of("traces", "taken") == 1


def test_an_attempt_to_deliver_says_what_came_of_it_and_neither_url_nor_text() -> None:
    with observe_backend.over_grpc() as backend:
        seen = observer(backend)
        seen.tried(Tried("pager", "webhook", 2, "retrying", 503, 0.1))
        (told,) = backend.named("deliver")
        seen.tracing.close()
    expected = {"leverwatch.receiver": "pager", "leverwatch.receiver_kind": "webhook", "leverwatch.outcome": "retrying"}
    assert facts(told) == {**expected, "leverwatch.notices": 2, "http.response.status_code": 503, "error.type": "503"}


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_dead_endpoint_is_said_once_costs_a_moment_and_keeps_nobody_from_ending(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    seen = observer(Backend(DEAD), protocol)
    began_s = time.perf_counter()
    for _ in range(10_000):  # more than the queue holds
        seen.tracing.told("x", 0.0, "internal", {})
    told_s = time.perf_counter() - began_s
    deadline = time.monotonic() + 60
    while not seen.tracing.failed_sendings.get("traces") and time.monotonic() < deadline:
        time.sleep(0.05)
    began_s = time.perf_counter()
    seen.tracing.close()
    assert time.perf_counter() - began_s < 10
    assert told_s < 30  # 10,000 spans; a call that waited for an answer would take minutes
    assert seen.tracing.failed_sendings["traces"] >= 1
    said = [record.getMessage() for record in caplog.records]
    assert [one for one in said if DEAD in one] == said
    assert len(said) == 1


def test_without_an_endpoint_the_library_is_not_even_imported() -> None:
    asked = "import sys, leverwatch.serving, leverwatch.collecting, leverwatch.cli.work; print([n for n in sys.modules if '.sdk' in n])"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() == "[]"
    assert starting.started(Observe(), "serve", families) is OFF


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name == "opentelemetry.sdk" or name.startswith(("opentelemetry.sdk.", "leverwatch.observe.sending"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(starting.ObserveMissingError, match=r"pip install 'leverwatch\[observe\]'"):
        starting.started(Observe(endpoint=DEAD), "serve", families)
