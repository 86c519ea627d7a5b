"""The fleet as a stream: a scenario in, what happened in it in order of time out, as far as a moment."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np

from demo import evaluating
from demo.ids import Ids, IdSource
from demo.luck import luck
from demo.pools import PoolServed, Way
from demo.records import Outcome, Reading, Request, Score
from demo.replicas.replica import Replica
from demo.replicas.sequence import Sequence
from demo.scenarios.layout import Scenario
from demo.served import reading, served
from demo.traffic.arrivals import Arrival
from demo.traffic.mixes import BLOCK_S, Mixes

NS = 1_000_000_000
RETRY_S = 0.5

Event: TypeAlias = Request | Reading | Score
Arrivals: TypeAlias = Callable[[int], list[Arrival]]


class Fleet:
    """A scenario played from `from_hour` on, whose hour 0 is at `began_ns`, in Unix nanoseconds; the same seed gives the same events.

    `arrivals` gives those of a block of five minutes, by its number, in order of time; by default they are the scenario's mixes.
    """

    def __init__(self, scenario: Scenario, began_ns: int, seed: int, *, from_hour: float = 0.0, arrivals: Arrivals | None = None) -> None:
        self._scenario, self._began_ns = scenario, began_ns
        self._luck = luck(np.random.default_rng([seed, 1]))
        self._ids = IdSource(seed)
        self._arrivals = arrivals or Mixes(scenario, seed).block
        self._pools = {
            pool.name: PoolServed(pool, scenario.changes, scenario.noise, np.random.default_rng([seed, 2, place]))
            for place, pool in enumerate(scenario.pools)
        }
        self._replicas = [replica for pool in self._pools.values() for replica in pool.replicas()]
        self._scores = evaluating.scores(scenario, began_ns, seed, from_hour)
        self._due: list[tuple[float, int, Callable[[float, Any], None], Any]] = []
        self._wakes: dict[Replica, float] = {}
        self._order = 0
        self._coming: deque[Arrival] = deque()
        self._from_s = from_hour * 3600
        self._events: list[Event] = []
        self.requests = 0
        """Requests served so far, each attempt of them."""
        self._at(self._from_s // BLOCK_S * BLOCK_S, self._begin_block, None)
        self._at(self._from_s, self._read, None)
        self._evaluate(-math.inf, None)

    def until(self, at_ns: int) -> list[Event]:
        """What has happened since the last call and before `at_ns`."""
        until_s = (at_ns - self._began_ns) / NS
        due, coming = self._due, self._coming
        while True:
            moment_s = due[0][0]
            if coming and coming[0].at_s < moment_s:
                if coming[0].at_s >= until_s:
                    break
                self._arrive(coming[0].at_s, coming.popleft())
            elif moment_s >= until_s:
                break
            else:
                _, _, happen, to = heapq.heappop(due)
                happen(moment_s, to)
        events, self._events = self._events, []
        return events

    def _at(self, moment_s: float, happen: Callable[[float, Any], None], to: object) -> None:
        self._order += 1
        heapq.heappush(self._due, (moment_s, self._order, happen, to))

    def _wake(self, now_s: float, replica: Replica) -> None:
        if self._wakes.get(replica) == now_s:
            del self._wakes[replica]
            self._advance(now_s, replica)

    def _advance(self, now_s: float, replica: Replica) -> None:
        """What is due at a replica happens, and it is looked after again when something next is."""
        self._catch_up(now_s, replica)
        self._look_after(replica)

    def _catch_up(self, now_s: float, replica: Replica) -> None:
        for what, sequence in replica.advance(now_s):
            if what == "ended":
                self._finish(now_s, sequence)
            else:
                self._ship(now_s, sequence)

    def _look_after(self, replica: Replica) -> None:
        next_s = replica.next_s()
        if next_s != math.inf and self._wakes.get(replica) != next_s:
            self._at(next_s, self._wake, replica)
        self._wakes[replica] = next_s

    def _begin_block(self, now_s: float, _: None) -> None:
        for replica in self._replicas:
            self._advance(now_s, replica)
        for pool in self._pools.values():
            pool.turn(now_s)
        for replica in self._replicas:
            self._look_after(replica)
        self._coming.extend(arrival for arrival in self._arrivals(round(now_s / BLOCK_S)) if arrival.at_s >= self._from_s)
        self._at(now_s + BLOCK_S, self._begin_block, None)

    def _read(self, now_s: float, _: None) -> None:
        for replica in self._replicas:
            self._advance(now_s, replica)
            self._events.append(reading(replica, self._began_ns + round(now_s * NS)))
        self._at(now_s + self._scenario.scrape_s, self._read, None)

    def _evaluate(self, _: float, score: Score | None) -> None:
        if score is not None:
            self._events.append(score)
        following = next(self._scores, None)
        if following is not None:
            self._at((following.at_ns - self._began_ns) / NS, self._evaluate, following)

    def _arrive(self, now_s: float, arrival: Arrival) -> None:
        """A request comes: it may be going to be aborted, or to fail and be tried again."""
        disorder = self._scenario.disorder
        fate, part, retried = next(self._luck), next(self._luck), next(self._luck)
        ids = self._ids.drawn()
        if fate < disorder.abort_share:
            aborted = arrival._replace(output_tokens=max(1, int(arrival.output_tokens * part)))
            self._admit(now_s, (aborted, ids, 1, "aborted"))
        elif fate < disorder.abort_share + disorder.error_share:
            self._admit(now_s, (arrival._replace(output_tokens=1), ids, 1, "error"))
            if retried < disorder.retry_share:
                self._at(now_s + RETRY_S, self._admit, (arrival, ids, 2, "ok"))
        else:
            self._admit(now_s, (arrival, ids, 1, "ok"))

    def _admit(self, now_s: float, asked: tuple[Arrival, Ids, int, Outcome]) -> None:
        """A pool takes an attempt in, and sends it to one of its workers."""
        arrival = asked[0]
        pool = self._pools[arrival.pool]
        arm, sequence = pool.drawn(*asked)
        sequence.frontend_s = pool.pool.frontend_s * (0.5 + next(self._luck))
        sequence.queued_s = now_s
        group, worker = pool.routed(arm, sequence)
        self._catch_up(now_s, worker)
        first = group.reader(worker, sequence)
        sequence.at = worker.deployment
        if first is not worker:
            self._look_after(worker)
            self._catch_up(now_s, first)
            sequence.way = Way(group, first, worker)
            sequence.prefill_at = first.deployment
        first.enqueue(sequence)
        self._look_after(first)

    def _ship(self, now_s: float, sequence: Sequence) -> None:
        """The state of a prompt that was read moves to the worker that decodes."""
        way = cast(Way, sequence.way)
        sequence.transfer_bytes = way.decoder.uncached(sequence) * way.decoder.roofline.kv_bytes_per_token
        link = way.group.links[way.group.workers.index(way.reader)]
        self._at(link.moved_s(now_s, sequence.transfer_bytes), self._move, sequence)

    def _move(self, now_s: float, sequence: Sequence) -> None:
        way = cast(Way, sequence.way)
        for replica in (way.reader, way.decoder):
            self._catch_up(now_s, replica)
        sequence.moved_s = now_s
        way.reader.let_go(sequence)
        way.decoder.adopt(sequence)
        for replica in (way.reader, way.decoder):
            self._look_after(replica)

    def _finish(self, now_s: float, sequence: Sequence) -> None:
        self.requests += 1
        self._events.append(served(sequence, now_s, self._began_ns))
