"""Mooncake's conversation trace in, trace exports out: what an SGLang with a prefix cache that forgets nothing would have sent.

A prompt is a list of blocks of 512 tokens, the last one of what is left; equal ids are equal blocks after equal blocks. All leading
blocks that came before are cached, the last one too, and a prompt that is cached as a whole counts as such: an engine that has to
compute one token for its answer would count one less (0.373623 in all, in place of 0.373624).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collectors_bodies import START, attribute, body
from opentelemetry.proto.trace.v1.trace_pb2 import Span

BLOCK_TOKENS = 512
REQUESTS_AN_EXPORT = 512


def lines(trace: Path) -> list[dict[str, Any]]:
    """The requests of the trace, in order of arrival."""
    return [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]


def exports(trace: Path) -> Iterator[bytes]:
    """Trace exports of the requests with their cached tokens, some hundred requests each."""
    requests = list(enumerate(zip(lines(trace), cached_tokens(trace), strict=True), 1))
    for first in range(0, len(requests), REQUESTS_AN_EXPORT):
        spans = [_span(number, request, cached) for number, (request, cached) in requests[first : first + REQUESTS_AN_EXPORT]]
        yield body(*spans, scope="sglang server", leverwatch__model="mooncake", service__instance__id="sglang-0")


def cached_tokens(trace: Path) -> list[int]:
    """The cached tokens of each request, by a cache of every block that came before."""
    held: set[int] = set()
    found = []
    for request in lines(trace):
        blocks = request["hash_ids"]
        first_new = next((place for place, block in enumerate(blocks) if block not in held), len(blocks))
        found.append(min(first_new * BLOCK_TOKENS, request["input_length"]))
        held.update(blocks)
    return found


def _span(number: int, request: dict[str, Any], cached: int) -> Span:
    began = START + request["timestamp"] * 1_000_000
    said: dict[str, str | int] = {
        "gen_ai.request.id": f"mooncake-{number}",
        "rid": f"mooncake-{number}",
        "gen_ai.usage.prompt_tokens": request["input_length"],
        "gen_ai.usage.completion_tokens": request["output_length"],
        "gen_ai.usage.cached_tokens": cached,
    }
    return Span(
        trace_id=number.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        name=f"Req {number:08x}",
        start_time_unix_nano=began,
        end_time_unix_nano=began + 1_000_000_000,
        attributes=[attribute(key, value) for key, value in said.items()],
    )
