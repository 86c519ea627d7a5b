"""What happened in a fleet in, the bodies that its processes send out: traces, metrics and logs as OTLP exports, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from demo import disorder
from demo.engines import evaluation_job, voices, wire
from demo.engines.exports import Exports
from demo.engines.log_exports import EmittedLog, LogExports
from demo.records import Deployment, Reading, Request, Score
from demo.scenarios.layout import Disorder
from demo.scraped import Scraped, export

POINTS_PER_EXPORT = 2000
Signal: TypeAlias = Literal["traces", "metrics", "logs"]


class Body(NamedTuple):
    """An encoded OTLP export request, and how many spans, points or records it holds."""

    signal: Signal
    content: bytes
    items: int


class Telemetry:
    """Speaks for a fleet's processes, which began at `began_ns`. In front of its engines stand response taps, unless it is not `tapped`."""

    def __init__(self, suffers: Disorder, began_ns: int, *, tapped: bool = True) -> None:
        self._voices, self._tapped = voices.voices(), tapped
        self._suffers, self._began_ns = suffers, began_ns
        self._evaluation = evaluation_job.Emitter()
        self._exports, self._log_exports = Exports(), LogExports()
        self._pages: dict[str, voices.Page] = {}
        self._scraped: dict[str, Scraped] = {}
        self.texts: dict[str, str] = {}
        """The page of each replica as it was last looked at."""

    def bodies(self, events: Sequence[Request | Reading | Score], *, scraped: bool = True) -> Iterator[Body]:
        """What is sent of events, which are in order of time; no samples of the pages unless they are scraped.

        Samples go first: history is sent faster than life, and a request that is settled before its replica's samples come never has them.
        """
        spans: list[wire.Emitted] = []
        logs: list[EmittedLog] = []
        looked: list[tuple[int, Scraped, str]] = []
        for event in events:
            if isinstance(event, Request):
                spans.extend(self._told(event))
                logs.extend(self._voices[event.at.engine].logs(event))
            elif isinstance(event, Reading):
                looked.append(self._looked_at(event))
            else:
                spans.extend(self._evaluation.spans(event))
        if scraped:
            yield from _metrics(looked)
        for content, items in self._exports.bodies(spans):
            yield Body("traces", content, items)
        for content, items in self._log_exports.bodies(logs):
            yield Body("logs", content, items)

    def _told(self, request: Request) -> Iterable[wire.Emitted]:
        voice = self._voices[request.at.engine]
        for one in disorder.told(request, self._suffers):
            yield from voice.spans.spans(one)
            if self._tapped and voice.tap is not None:
                yield from voice.tap.spans(disorder.by_a_right_clock(one, self._suffers))
        for at in (request.at, request.prefill_at):
            if at is not None:
                self._page(at).observe(request)

    def _page(self, at: Deployment) -> voices.Page:
        if at.replica not in self._pages:
            self._pages[at.replica] = self._voices[at.engine].page(at)
        return self._pages[at.replica]

    def _looked_at(self, reading: Reading) -> tuple[int, Scraped, str]:
        """When a page was looked at, whose it is and what was on it: what had happened by then."""
        text = self.texts[reading.of.replica] = self._page(reading.of).text(reading)
        return reading.at_ns, self._scraped_of(reading.of), text

    def _scraped_of(self, at: Deployment) -> Scraped:
        if at.replica not in self._scraped:
            name = self._voices[at.engine].known_as(at.replica)
            resource = {"service.name": at.engine, "service.instance.id": name, "server.port": "8000", "url.scheme": "http"}
            self._scraped[at.replica] = Scraped(resource, self._began_ns)
        return self._scraped[at.replica]


def _metrics(looked: Iterable[tuple[int, Scraped, str]]) -> Iterator[Body]:
    """What a Collector sends of the pages: those of one moment together, and of several moments where they are few.

    Exports one behind the other are one export, as protobuf has it.
    """
    parts, points = list[bytes](), 0
    for at_ns, pages in groupby(looked, key=itemgetter(0)):
        found = [scraped.read(text, at_ns) for _, scraped, text in pages]
        parts.append(export([page for page, _ in found]))
        points += sum(count for _, count in found)
        if points >= POINTS_PER_EXPORT:
            yield Body("metrics", b"".join(parts), points)
            parts, points = [], 0
    if parts:
        yield Body("metrics", b"".join(parts), points)
