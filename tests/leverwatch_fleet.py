"""Small fleets of vLLM with and without the tap, put into an engine room, and what a diagnosis says of one replica."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from collectors_bodies import START, attribute, span
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from leverwatch.engine_room import EngineRoom

NOW = datetime.fromtimestamp(START / 1e9, UTC) + timedelta(hours=1)


def vllm(number: int, **attributes: Any) -> Span:
    """A request's span of vLLM with its times."""
    said = {
        "gen_ai.usage.prompt_tokens": 100,
        "gen_ai.usage.completion_tokens": 10,
        "gen_ai.latency.time_to_first_token": 0.05,
        "gen_ai.latency.e2e": 0.25,
        "gen_ai.latency.time_in_model_decode": 0.2,
        "gen_ai.request.id": f"chatcmpl-{number}",
    } | attributes
    return span(number, attributes=[attribute(key, value) for key, value in said.items()])


def tapped(number: int, **attributes: Any) -> Span:
    """The tap's span of the same request."""
    said = {f"leverwatch.body.{key}": value for key, value in ({"request_id": f"chatcmpl-{number}"} | attributes).items()}
    return span(
        number, span_id=(1000 + number).to_bytes(8, "big"), name="response_body", attributes=[attribute(*one) for one in said.items()]
    )


def half(number: int, phase: str) -> Span:
    """One leg of a prefill/decode pair."""
    said = {"gen_ai.request.id": f"p-{number}", "gen_ai.usage.completion_tokens": 1 if phase == "prefill" else 9}
    one = vllm(number, **said)
    return span(number, span_id=(2000 + number).to_bytes(8, "big"), attributes=one.attributes) if phase == "prefill" else one


def put(room: EngineRoom, *bodies: bytes, sender: str = "10.0.0.1", at_ns: int = START + 1_000_000_000) -> None:
    for one in bodies:
        room.spool.append("traces", sender, at_ns, one).result()
    room.drain()


def states(told: dict[str, Any], replica: str = "r1") -> dict[str, str]:
    one = next(one for one in told["replicas"] if one["replica"] == replica)
    return {core["metric"]: core["state"] for core in one["core"]}


def why(told: dict[str, Any], column: str, replica: str = "r1") -> str:
    one = next(one for one in told["replicas"] if one["replica"] == replica)
    found: str = next(each["why"] for each in one["columns"] if each["column"] == column)
    return found
