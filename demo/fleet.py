"""The fleet as a stream: a scenario in, its spans in the order they ended in out, as far as a moment."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from types import MappingProxyType

from demo import records, traffic
from demo.engines import response_tap, sglang, vllm
from demo.engines.wire import Emitted, Emitter
from demo.scenarios import Scenario

BLOCK_NS = traffic.BLOCK_S * traffic.NS


def emitters() -> Mapping[str, tuple[Emitter, ...]]:
    """Who speaks for a request, by engine."""
    return MappingProxyType({"vllm": (vllm.Emitter(), response_tap.Emitter()), "sglang": (sglang.Emitter(),)})


class Fleet:
    """A scenario played from hour 0 at `began_ns`, in Unix nanoseconds; the same seed gives the same bytes."""

    def __init__(self, scenario: Scenario, began_ns: int, seed: int) -> None:
        self._scenario = scenario
        self._began_ns = began_ns
        self._seed = seed
        self._emitters = emitters()
        self._next_block = began_ns // BLOCK_NS
        self._running: list[Emitted] = []
        self._last_ends_ns: list[int] = []
        self.requests = 0
        """Requests all of whose spans have ended."""

    def until(self, at_ns: int) -> list[Emitted]:
        """The spans that ended since the last call and before `at_ns`."""
        while self._next_block * BLOCK_NS < at_ns:
            self._serve(self._next_block)
            self._next_block += 1
        self._count(at_ns)
        self._running.sort(key=attrgetter("ended_ns"))
        ended = sum(span.ended_ns < at_ns for span in self._running)
        done, self._running = self._running[:ended], self._running[ended:]
        return done

    def _serve(self, block: int) -> None:
        for request in records.rows(traffic.requests(self._scenario, self._began_ns, block, self._seed)):
            spans = [span for emitter in self._emitters[request.engine] for span in emitter.spans(request)]
            self._running.extend(spans)
            self._last_ends_ns.append(max(span.ended_ns for span in spans))

    def _count(self, at_ns: int) -> None:
        open_ns = [ended_ns for ended_ns in self._last_ends_ns if ended_ns >= at_ns]
        self.requests += len(self._last_ends_ns) - len(open_ns)
        self._last_ends_ns = open_ns
