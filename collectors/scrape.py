"""Targets in, their metrics out through the door: one task per target, so that one that hangs delays no other."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import Meta

from collectors.door import BusyError, Door
from collectors.inflate import BrokenBodyError, TooLargeError, whole
from collectors.ledger import Note
from collectors.prometheus_text import Scrape, spooled

LIMIT_RESPONSE_BYTES = 16 * 1024 * 1024
LIMIT_SAMPLES = 50_000  # a scrape is loaded beside the spans that came with it: reading and storing these takes 1.5 s
SHORTEST_INTERVAL_S = 1.0
LONGEST_S = 10.0
NO_METRICS = ("text/html", "application/xhtml+xml", "application/json", "text/xml", "application/xml")
ACCEPT = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5"


class ScrapeError(RuntimeError):
    """A target could not be scraped; says what it answered, and never with its address or token."""


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One endpoint of metrics. `replica` names its replica, or `replica_from` the label that does; `labels` are added to every sample.

    Raises:
        ValueError: a value that cannot be used.
    """

    url: Annotated[str, Meta(description="where the target shows its metrics, such as http://10.0.0.5:8000/metrics")]
    interval_s: Annotated[float, Meta(description="seconds from one scrape to the next, 1 or more")] = 15.0
    timeout_s: Annotated[float | None, Meta(description="seconds that a scrape may take, at most interval_s; unset: 10, or less")] = None
    replica: Annotated[str, Meta(description="the replica that the target is")] = ""
    replica_from: Annotated[str, Meta(description="the label that names the replica of each sample, such as Hostname")] = ""
    labels: Annotated[dict[str, str], Meta(description="labels added to every sample; they win over the target's own")] = {}
    bearer_token_file: Annotated[str, Meta(description="a file with the token to show, read anew each time")] = ""
    limit_samples: Annotated[int, Meta(description="the samples that a scrape may hold; a larger one is not taken")] = LIMIT_SAMPLES
    ca_file: Annotated[str, Meta(description="a file with the certificates that may sign the target's, instead of the system's")] = ""

    def __hash__(self) -> int:
        return hash(self.url)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            msg = f"[[scrape]] url = {self.url!r}: an address such as http://10.0.0.5:8000/metrics is taken"
            raise ValueError(msg)
        if parts.username or parts.password:
            msg = "[[scrape]] url: a name or password in it is not taken; bearer_token_file is"
            raise ValueError(msg)
        if not self.interval_s >= SHORTEST_INTERVAL_S:
            msg = f"[[scrape]] {self.instance}: interval_s = {self.interval_s}: {SHORTEST_INTERVAL_S} or more is taken"
            raise ValueError(msg)
        if not 0 < self.limit_s <= self.interval_s:
            msg = f"[[scrape]] {self.instance}: timeout_s = {self.limit_s}: more than 0, at most interval_s ({self.interval_s}) is taken"
            raise ValueError(msg)
        if self.limit_samples < 1:
            msg = f"[[scrape]] {self.instance}: limit_samples = {self.limit_samples}: 1 or more is taken"
            raise ValueError(msg)
        if self.replica and self.replica_from:
            msg = f"[[scrape]] {self.instance}: replica or replica_from, not both"
            raise ValueError(msg)

    @property
    def instance(self) -> str:
        """Host and port, which name the target and stand for its replica where nothing else does."""
        parts = urlsplit(self.url)
        return parts.netloc if parts.port else f"{parts.netloc}:{443 if parts.scheme == 'https' else 80}"

    @property
    def limit_s(self) -> float:
        """Seconds that a scrape may take: what was set, else 10, or the interval where that is shorter."""
        return min(LONGEST_S, self.interval_s) if self.timeout_s is None else self.timeout_s

    @property
    def sender(self) -> str:
        """The target's name in the ledger."""
        return f"scrape:{self.instance}{urlsplit(self.url).path}"


class Scraper:
    """Scrapes every target at its own beat until it is stopped. `warnings` says which targets fail now, and why."""

    def __init__(
        self,
        targets: Sequence[Target],
        door: Door,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._targets, self._door, self._transport, self._sleep = targets, door, transport, sleep
        self._tasks: list[asyncio.Task[None]] = []
        self._clients: dict[Target, httpx.AsyncClient] = {}
        self.warnings: dict[str, str] = {}

    def start(self) -> None:
        """Begins; to be called in a running event loop."""
        self._tasks = [asyncio.create_task(self._follow(target), name=target.sender) for target in self._targets]

    async def stop(self) -> None:
        """Ends at once, whatever a target does."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    async def scrape(self, target: Target) -> None:
        """Scrapes a target once; a failure stands in `warnings` and in the ledger until the next success."""
        try:
            async with asyncio.timeout(target.limit_s):
                body = await self._fetched(target)
            await self._door.take("scrapes", target.sender, body)
        except TimeoutError:
            self._fail(target, f"did not answer within {target.limit_s:g} s")
        except (ScrapeError, TooLargeError, BrokenBodyError, BusyError) as error:
            self._fail(target, str(error))
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            self._fail(target, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        else:
            self.warnings.pop(target.sender, None)

    async def _follow(self, target: Target) -> None:
        """Spreads the targets over their interval, then keeps each one's beat."""
        loop = asyncio.get_running_loop()
        due = loop.time() + random.uniform(0, min(target.interval_s, 1.0))  # noqa: S311 - it only spreads the load
        while True:
            await self._sleep(max(0.0, due - loop.time()))
            await self.scrape(target)
            missed = max(0, (loop.time() - due) // target.interval_s)
            due += (missed + 1) * target.interval_s

    async def _fetched(self, target: Target) -> bytes:
        headers = {"accept": ACCEPT, "accept-encoding": "gzip", "user-agent": "leverwatch"}
        if target.bearer_token_file:
            token = await asyncio.to_thread(Path(target.bearer_token_file).read_text, encoding="utf-8")
            headers["authorization"] = f"Bearer {token.strip()}"
        async with self._client(target).stream("GET", target.url, headers=headers) as response:
            if response.status_code != 200:
                msg = f"answered {response.status_code}"
                raise ScrapeError(msg)
            encoding = response.headers.get("content-encoding", "identity").lower()
            if encoding not in ("gzip", "identity"):
                msg = f"answered with content-encoding {encoding!r}, which was not asked for"
                raise ScrapeError(msg)
            text = await whole(_pieces(response), encoding, LIMIT_RESPONSE_BYTES)
            kind = response.headers.get("content-type", "")
        if kind.split(";")[0].strip().lower() in NO_METRICS or text.lstrip()[:1] == b"<":
            msg = f"answered with {kind or 'a page'!r}, not with the text of metrics; is the path right?"
            raise ScrapeError(msg)
        if (count := _samples_in(text)) > target.limit_samples:
            msg = f"shows {count:,} samples, more than limit_samples = {target.limit_samples}; show fewer, or raise it"
            raise ScrapeError(msg)
        scrape = Scrape(target.instance, kind, target.replica, target.replica_from, target.labels)
        return spooled(scrape, text)

    def _client(self, target: Target) -> httpx.AsyncClient:
        """One client a target, kept: making one reads certificates, and its connection is used again."""
        if target not in self._clients:
            verify = ssl.create_default_context(cafile=target.ca_file or None) if target.url.startswith("https:") else False
            self._clients[target] = httpx.AsyncClient(transport=self._transport, timeout=target.limit_s, trust_env=False, verify=verify)
        return self._clients[target]

    def _fail(self, target: Target, reason: str) -> None:
        self.warnings[target.sender] = reason
        self._door.note(Note(target.sender, "scrapes", self._door.clock_ns(), f"not scraped: {reason}"))


def _samples_in(text: bytes) -> int:
    """How many lines of a text are samples, without looking at each: those that are neither comments nor empty."""
    lines = b"\n" + text.rstrip(b"\r\n")
    return lines.count(b"\n") - sum(map(lines.count, (b"\n#", b"\n\n", b"\n\r\n")))


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in response.aiter_raw():
        yield piece
