"""A job that scores answers: a score in, a span with its `gen_ai.evaluation.result` event out, as the GenAI conventions name it."""

from __future__ import annotations

import hashlib
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from demo.engines import wire
from demo.records import Score

EVENT = "gen_ai.evaluation.result"
SCOPE = "evaluation"
LASTS_NS = 30_000_000_000


class Emitter:
    """Emits scores. What the conventions have no word for stands under `leverwatch.evaluation.`."""

    def __init__(self) -> None:
        self._source = wire.Source(tuple(wire.sdk("evaluation-job", None).items()), SCOPE)

    def spans(self, score: Score) -> tuple[wire.Emitted, ...]:
        """The run's span."""
        named = f"{score.run_id} {score.setting} {score.repeat} {score.at_ns}".encode()
        span = Span(
            name=f"evaluate {score.suite}",
            kind=wire.INTERNAL,
            trace_id=hashlib.blake2b(named, digest_size=16).digest(),
            span_id=hashlib.blake2b(named, digest_size=8).digest(),
            start_time_unix_nano=score.at_ns - LASTS_NS,
            end_time_unix_nano=score.at_ns,
        )
        event = span.events.add(name=EVENT, time_unix_nano=score.at_ns)
        for key, value in _said(score).items():
            said = event.attributes.add(key=key).value
            setattr(said, f"{_KINDS[type(value)]}_value", value)
        return (wire.Emitted(score.at_ns, self._source, span.SerializeToString()),)


_KINDS: dict[type, str] = {str: "string", int: "int", float: "double"}


def _said(score: Score) -> dict[str, Any]:
    own = {name: getattr(score, name) for name in ("kind", "lever", "setting", "run_id", "repeat", "better", "n", "temperature")}
    said = {"gen_ai.evaluation.name": score.suite, "gen_ai.evaluation.score.value": score.score, "gen_ai.response.model": score.model}
    return said | {f"leverwatch.evaluation.{name}": value for name, value in own.items()}
