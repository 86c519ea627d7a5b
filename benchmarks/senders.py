"""The load generator of the benchmarks: an address in, export requests of vLLM-like spans out, and what became of them as JSON.

    python benchmarks/senders.py 127.0.0.1:4317 --senders 8 --seconds 10

A span has 20 attributes (about 830 bytes) and is a request of its own. Bodies with random token counts and strings of small vocabularies
are made beforehand; before each sending every span gets fresh ids, times and latencies, patched in place by NumPy, so that a sender costs
little beside the server that it measures. Each sender is a connection with one export at a time; all are threads of one process.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import os
import resource
import threading
import time
from pathlib import Path

import grpc
import numpy as np
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
RETRY_INFO = b"google.rpc.RetryInfo"
SPANS_A_BODY = 512
TRACE_MARK, SPAN_MARK, REQUEST_MARK = b"\xa5" * 16, b"\x5a" * 8, "?" * 16
START_MARK, END_MARK = 0xB6B6B6B6B6B6B6B6, 0x6B6B6B6B6B6B6B6B
LATENCIES = ("time_to_first_token", "e2e", "time_in_queue", "time_in_model_prefill", "time_in_model_decode", "time_in_model_inference")
LATENCY_MARKS = [bytes([0xC1 + place]) * 8 for place in range(len(LATENCIES))]
WORDS = ("background", "enterprise", "individual", "eu-west-1a", "us-east-2b", "canary-017", "chat-panel", "agent-loop")
TEMPERATURES = (0.0, 0.7, 1.0)
HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
WALL, MONOTONIC = 2.0**31, 2.0**17  # a difference of two clock readings is a multiple of their last bit, as in what vLLM sends


def marked_body(rng: np.random.Generator, spans: int, replica: str, **facts: str) -> bytes:
    """An export request of spans that are equally long, with marks for what each sending makes new."""
    request = ExportTraceServiceRequest()
    group: ResourceSpans = request.resource_spans.add()
    for key, text in (("service.name", "vllm"), ("service.instance.id", replica), ("leverwatch.model", "bench"), *facts.items()):
        group.resource.attributes.add(key=key).value.string_value = text
    scope = group.scope_spans.add()
    scope.scope.name = "vllm.tracing.otel"
    tokens = rng.integers(128, 4096, (spans, 2))  # each takes two bytes
    for number in range(spans):
        span = scope.spans.add(trace_id=TRACE_MARK, span_id=SPAN_MARK, name="llm_request", kind=Span.SPAN_KIND_SERVER)
        span.start_time_unix_nano, span.end_time_unix_nano = START_MARK, END_MARK
        for name, mark in zip(LATENCIES, LATENCY_MARKS, strict=True):
            span.attributes.add(key=f"gen_ai.latency.{name}").value.double_value = np.frombuffer(mark)[0]
        for name, count in zip(("prompt_tokens", "completion_tokens"), tokens[number], strict=True):
            span.attributes.add(key=f"gen_ai.usage.{name}").value.int_value = int(count)
        span.attributes.add(key="gen_ai.request.id").value.string_value = f"chatcmpl-{REQUEST_MARK}"
        span.attributes.add(key="gen_ai.request.temperature").value.double_value = float(rng.choice(TEMPERATURES))
        for place, word in enumerate(rng.choice(WORDS, 10)):
            span.attributes.add(key=f"bench.labels.{place}").value.string_value = word
    body: bytes = request.SerializeToString()
    return body


def latencies_s(rng: np.random.Generator, spans: int) -> dict[str, np.ndarray]:
    """Random latencies that fit together."""
    queue, prefill, decode = rng.exponential(0.05, spans), rng.gamma(2.0, 0.1, spans), rng.gamma(2.0, 2.0, spans)
    wall = {"time_to_first_token": queue + prefill, "e2e": queue + prefill + decode}
    steady = {"time_in_queue": queue, "time_in_model_prefill": prefill, "time_in_model_decode": decode}
    steady["time_in_model_inference"] = prefill + decode
    found = {name: (WALL + values) - WALL for name, values in wall.items()}
    return found | {name: (MONOTONIC + values) - MONOTONIC for name, values in steady.items()}


class Template:
    """A body whose ids, times and latencies are made new for each sending."""

    def __init__(self, rng: np.random.Generator, spans: int, replica: str, **facts: str) -> None:
        body = marked_body(rng, spans, replica, **facts)
        self.spans, self.first = spans, body.index(TRACE_MARK)
        self.stride = body.index(TRACE_MARK, self.first + 1) - self.first if spans > 1 else len(body) - self.first
        marks = (TRACE_MARK, SPAN_MARK, REQUEST_MARK.encode(), START_MARK.to_bytes(8, "little"), END_MARK.to_bytes(8, "little"))
        self.places = [(body.index(mark) - self.first, len(mark)) for mark in (*marks, *LATENCY_MARKS)]
        self.bytes = np.frombuffer(body, np.uint8).copy()

    def copy(self) -> Template:
        """The same spans in a buffer of their own."""
        other = copy.copy(self)
        other.bytes = self.bytes.copy()
        return other

    def fresh(self, rng: np.random.Generator, now_ns: int) -> tuple[bytes, np.ndarray]:
        """The body with new ids and latencies whose requests ended in the last second, and the ids: 24 bytes a span."""
        count = self.spans
        random = np.frombuffer(rng.bytes(count * 32), np.uint8).reshape(count, 32)
        request_ids = HEX[np.stack((random[:, 24:] >> 4, random[:, 24:] & 15), axis=2).reshape(count, 16)]
        latencies = latencies_s(rng, count)
        ends = np.uint64(now_ns) - rng.integers(0, 10**9, count, dtype=np.uint64)
        starts = ends - (latencies["e2e"] * 1e9).astype(np.uint64)
        columns = [random[:, :16], random[:, 16:24], request_ids, starts, ends, *(latencies[name] for name in LATENCIES)]
        width = max(place + size for place, size in self.places)
        rows = np.lib.stride_tricks.as_strided(self.bytes[self.first :], (count, width), (self.stride, 1))
        for (place, size), column in zip(self.places, columns, strict=True):
            rows[:, place : place + size] = np.ascontiguousarray(column).view(np.uint8).reshape(count, size)
        return self.bytes.tobytes(), random[:, :24]


@dataclasses.dataclass
class Outcome:
    """What became of one sender's exports; delays in seconds."""

    acknowledged: int = 0
    slowed: int = 0
    slowed_with_advice: int = 0
    failed: int = 0
    delays_s: list[float] = dataclasses.field(default_factory=list)
    ids: list[bytes] = dataclasses.field(default_factory=list)


def has_advice(error: grpc.RpcError) -> bool:
    """Whether a refusal says when to come again."""
    return any(RETRY_INFO in (value if isinstance(value, bytes) else value.encode()) for _, value in error.trailing_metadata() or ())


def offer(export: grpc.UnaryUnaryMultiCallable, body: bytes, until: float, outcome: Outcome) -> bool:
    """Sends a body again and again until it is acknowledged or the time is up; says whether it was acknowledged."""
    while True:
        started = time.perf_counter()
        try:
            export(body, timeout=30)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                outcome.slowed += 1
                outcome.slowed_with_advice += has_advice(error)
            else:
                outcome.failed += 1
            if time.monotonic() >= until:
                return False
            time.sleep(0.2)
        else:
            outcome.delays_s.append(time.perf_counter() - started)
            return True


def send(args: argparse.Namespace, number: int, pool: list[Template], until: float, outcome: Outcome) -> None:
    """One sender: a body after another over its own connection."""
    rng = np.random.default_rng([args.seed, 1 + number, os.getpid()])
    with grpc.insecure_channel(args.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        export = channel.unary_unary(EXPORT)
        turn, began = 0, time.monotonic()
        every_s = args.spans * args.senders / args.rate if args.rate else 0.0
        while time.monotonic() < until and not (args.stop and args.stop.exists()):
            body, ids = pool[turn % len(pool)].fresh(rng, time.time_ns())
            turn += 1
            if offer(export, body, until + args.patience, outcome):
                outcome.acknowledged += len(ids)
                outcome.ids.extend([ids.tobytes()] if args.ids else [])
            if args.pause or every_s:
                time.sleep(max(args.pause, began + turn * every_s - time.monotonic() if every_s else 0.0))


def cpu_s() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def summary(outcomes: list[Outcome], took_s: float, used_s: float) -> dict[str, float]:
    """The figures of all senders together."""
    delays = np.asarray([delay for outcome in outcomes for delay in outcome.delays_s] or [np.nan])
    acknowledged = sum(outcome.acknowledged for outcome in outcomes)
    counts = {name: sum(getattr(outcome, name) for outcome in outcomes) for name in ("slowed", "slowed_with_advice", "failed")}
    median, p99 = np.quantile(delays, (0.5, 0.99)) * 1e3
    speed = {"spans_per_s": acknowledged / took_s, "sender_cpu_s": used_s}
    return {"acknowledged": acknowledged, "took_s": took_s, **counts, **speed, "median_ms": float(median), "p99_ms": float(p99)}


def arm(lever: str | None, number: int) -> dict[str, str]:
    """The deployment fact that says a sender's arm of a lever."""
    return {f"leverwatch.arm.{lever}": "treated" if number else "control"} if lever else {}


def main() -> None:
    """Sends, and prints the outcome as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("address")
    parser.add_argument("--senders", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--spans", type=int, default=SPANS_A_BODY, help="in one export")
    parser.add_argument("--pool", type=int, default=4, help="bodies made beforehand, for each sender")
    parser.add_argument("--pause", type=float, default=0.0, help="between exports of a sender, in seconds")
    parser.add_argument("--rate", type=float, default=0.0, help="spans a second of all senders together; default: as fast as they can")
    parser.add_argument("--lever", help="a lever that the spans of the first sender are the control of, and all others treated by")
    parser.add_argument("--patience", type=float, default=0.0, help="how long after the end a body is still offered, in seconds")
    parser.add_argument("--stop", type=Path, help="a file whose appearance ends the sending early")
    parser.add_argument("--ids", type=Path, help="a file for the ids of acknowledged spans, 24 bytes each")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    pools = [[Template(rng, args.spans, f"bench-{n}", **arm(args.lever, n)) for _ in range(args.pool)] for n in range(min(args.senders, 8))]
    outcomes = [Outcome() for _ in range(args.senders)]
    started, used_s = time.monotonic(), cpu_s()
    for number, outcome in enumerate(outcomes):
        own = [template.copy() for template in pools[number % len(pools)]]
        threading.Thread(target=send, args=(args, number, own, started + args.seconds, outcome)).start()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
    if args.ids:
        args.ids.write_bytes(b"".join(ids for outcome in outcomes for ids in outcome.ids))
    print(json.dumps(summary(outcomes, time.monotonic() - started, cpu_s() - used_s)), flush=True)


if __name__ == "__main__":
    main()
