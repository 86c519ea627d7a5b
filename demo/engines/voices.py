"""How each engine tells what it did: its spans, its page of metrics, its answers, and its log records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from demo.engines import (
    dynamo,
    dynamo_body,
    dynamo_legs,
    dynamo_logs,
    dynamo_page,
    response_tap,
    sglang,
    sglang_body,
    sglang_page,
    trtllm,
    trtllm_body,
    trtllm_page,
    vllm,
    vllm_body,
    vllm_page,
    wire,
)
from demo.engines.log_exports import EmittedLog
from demo.records import Deployment, Reading, Request


class Page(Protocol):
    """A replica's metrics, as Prometheus finds them."""

    def observe(self, request: Request) -> None:
        """Takes a request that ended there into account."""

    def text(self, reading: Reading) -> str:
        """The page at a moment."""


@dataclass(frozen=True, slots=True)
class Voice:
    """One engine's ways of telling. `tap` stands in front of those whose answers say what their spans do not; `page` makes that of a
    process, `known_as` is the name that its spans have for a replica."""

    spans: wire.Emitter
    tap: wire.Emitter | None
    page: Callable[[Deployment], Page]
    answer: Callable[[Request], dict[str, Any]]
    logs: Callable[[Request], Iterable[EmittedLog]] = lambda _: ()
    known_as: Callable[[str], str] = str


def voices() -> Mapping[str, Voice]:
    """The voices of a fleet by engine."""
    tap = response_tap.Emitter()
    return MappingProxyType(
        {
            "vllm": Voice(vllm.Emitter(), tap, vllm_page.Page, vllm_body.answer),
            "sglang": Voice(sglang.Emitter(), tap, sglang_page.Page, sglang_body.answer),
            "trtllm": Voice(trtllm.Emitter(), tap, trtllm_page.Page, trtllm_body.answer),
            "dynamo": Voice(dynamo.Emitter(), None, dynamo_page.Page, dynamo_body.answer, dynamo_logs.records, _worker_id),
        }
    )


def _worker_id(replica: str) -> str:
    return str(dynamo_legs.worker_id(replica))
