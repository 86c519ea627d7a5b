"""A pool: the groups of replicas that serve one model, their arms, and who of them gets a request."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from demo.ids import Ids
from demo.luck import luck
from demo.records import Deployment, Outcome, Role
from demo.replicas import drafting
from demo.replicas.hardware import HARDWARE, NETWORKS
from demo.replicas.replica import Replica
from demo.replicas.roofline import Roofline
from demo.replicas.sequence import Sequence
from demo.replicas.serving import Affinity, Serving
from demo.scenarios.layout import Change, Noise, Pool
from demo.traffic.arrivals import Arrival
from demo.traffic.days import turned

ROTATION_S = 1800.0
MARGIN = 2
"""Sequences by which a replica may be ahead of the mean before a cap of affinity counts."""


@dataclass(slots=True)
class Link:
    """The wire out of a prefill worker: one state moves at a time."""

    bytes_per_s: float
    latency_s: float
    free_s: float = -math.inf

    def moved_s(self, now_s: float, size: float) -> float:
        """When a state of so many bytes that is ready now has come."""
        self.free_s = max(now_s, self.free_s) + self.latency_s + size / self.bytes_per_s
        return self.free_s


class Arm:
    """What a part of a pool's groups does, at an hour."""

    def __init__(self, pool: Pool, serving: Serving, name: str, setting: str) -> None:
        self.pool, self.serving, self.name = pool, serving, name
        levers = dict(sorted({**pool.settings, **({pool.lever: setting} if pool.lever else {})}.items()))
        self._levers = tuple(levers.items())
        self._arms = ((pool.lever, name),) if pool.lever and pool.control else ()
        self.groups: list[Group] = []
        self.takers: list[tuple[Group, Replica]] = []
        self.homes: dict[str, tuple[Group, Replica]] = {}
        """Where a tenant's or a conversation's prefixes belong, as far as it was asked since the arms last rotated."""
        self._deployments: dict[str, Deployment] = {}
        self.roofline: Roofline
        self.acceptance = self.later_acceptance = self.link_rate = 1.0

    def turn(self, changes: tuple[Change, ...], hour: float) -> None:
        """Takes in what the scenario has changed by an hour."""
        name = self.pool.name
        self.acceptance, self.later_acceptance = (turned(changes, name, knob, hour) for knob in ("acceptance", "later_acceptance"))
        self.link_rate = turned(changes, name, "link_bytes_per_s", hour)
        imbalance = self.pool.expert_imbalance * turned(changes, name, "expert_imbalance", hour)
        slowed = turned(changes, name, "wire_bytes_per_s", hour)
        network, hardware = NETWORKS[self.pool.network], HARDWARE[self.pool.hardware]
        self.roofline = Roofline(network, hardware, self.serving, imbalance=imbalance, slowed=slowed)

    def deployment(self, replica: str, role: Role) -> Deployment:
        """The facts of a worker that serves in this arm."""
        if replica not in self._deployments:
            self._deployments[replica] = self._stated(replica, role)
        return self._deployments[replica]

    def _stated(self, replica: str, role: Role) -> Deployment:
        pool, serving = self.pool, self.serving
        return Deployment(
            engine=pool.engine, model=pool.model, hardware=pool.hardware, topology=serving.topology, gpus=serving.gpus, replica=replica,
            role=role, levers=self._levers, arms=self._arms, kv_block_tokens=pool.kv_block_tokens,
            kv_blocks=max(1, int(self.roofline.kv_tokens / pool.kv_block_tokens)),
            link_peak_bytes_per_s=serving.split.link_bytes_per_s if serving.split else None,
            speculative_tokens=serving.speculation.draft_tokens if serving.speculation else None,
        )  # fmt: skip


class Group:
    """Workers that change arms together: one, or those of a split. `prefill` are the first of them where they are split."""

    def __init__(self, arm: Arm, names: list[str]) -> None:
        self.arm = arm
        self.workers = [
            Replica(arm.deployment(name, role), arm.roofline, arm.serving) for name, role in zip(names, self.roles(arm), strict=True)
        ]
        split = arm.serving.split
        self.links = [Link(split.link_bytes_per_s, split.link_latency_s) for _ in range(split.prefill)] if split else []

    @staticmethod
    def roles(arm: Arm) -> list[Role]:
        """Who does what."""
        split = arm.serving.split
        return [*["prefill"] * split.prefill, *["decode"] * split.decode] if split else ["unified"] * workers(arm.pool)  # type: ignore[list-item]

    def serve(self, arm: Arm, *, restart: bool) -> None:
        """Serves as an arm says from now on."""
        self.arm = arm
        for worker, role in zip(self.workers, self.roles(arm), strict=True):
            worker.configure(arm.deployment(worker.deployment.replica, role), arm.roofline, arm.serving, restart=restart)
        if arm.serving.split:
            for link in self.links:
                link.bytes_per_s = arm.serving.split.link_bytes_per_s * arm.link_rate

    @property
    def takers(self) -> list[Replica]:
        """The workers that requests are sent to."""
        return self.workers[self.arm.serving.split.prefill :] if self.arm.serving.split else self.workers

    def reader(self, decoder: Replica, sequence: Sequence) -> Replica:
        """Who reads the prompt of a sequence that is to be decoded there: one with few new tokens is read on the spot."""
        split = self.arm.serving.split
        if split is None or decoder.uncached(sequence) < split.local_below_tokens:
            return decoder
        return min(self.workers[: split.prefill], key=lambda worker: worker.load)


class Way(NamedTuple):
    """The way of a prompt's state from who reads it to who decodes."""

    group: Group
    reader: Replica
    decoder: Replica


def workers(pool: Pool) -> int:
    """Workers of each group of a pool."""
    return pool.serving.split.prefill + pool.serving.split.decode if pool.serving.split else 1


def worker_names(pool: Pool) -> list[list[str]]:
    """The names of a pool's workers, group by group."""
    count = workers(pool)
    return [[f"{pool.name}-{group * count + place}" for place in range(count)] for group in range(pool.groups)]


class PoolServed:
    """A pool in service. Moments are seconds of the scenario."""

    def __init__(self, pool: Pool, changes: tuple[Change, ...], noise: Noise, rng: np.random.Generator) -> None:
        self.pool = pool
        self._changes, self._noise, self._rng, self._luck = changes, noise, rng, luck(rng)
        self._treated = Arm(pool, pool.serving, "treated", pool.setting)
        self._control = Arm(pool, pool.control, "control", pool.control_setting) if pool.control else None
        for arm in self._arms():
            arm.turn(changes, 0.0)
        self.groups = [Group(self._treated, of_group) for of_group in worker_names(pool)]

    def _arms(self) -> list[Arm]:
        return [self._treated, self._control] if self._control else [self._treated]

    def replicas(self) -> Iterator[Replica]:
        """All workers, in order."""
        return (worker for group in self.groups for worker in group.workers)

    def turn(self, now_s: float) -> None:
        """A block of five minutes begins: arms rotate, what the scenario changes has its effect, and speed scatters."""
        for arm in self._arms():
            arm.turn(self._changes, now_s / 3600)
            arm.groups = []
        of_pool = self._around_one(self._noise.pool_sd)
        for place, group in enumerate(self.groups):
            arm = self._arm_of(place, now_s)
            group.serve(arm, restart=arm is not group.arm and self.pool.lever != "speculation")
            arm.groups.append(group)
            for worker in group.workers:
                worker.slowness = of_pool * self._around_one(self._noise.replica_sd)
        for arm in self._arms():
            arm.takers = [(group, worker) for group in arm.groups for worker in group.takers]
            arm.homes.clear()

    def _arm_of(self, group: int, now_s: float) -> Arm:
        if self._control is not None and (group - int(now_s // ROTATION_S)) % self.pool.control_every == 0:
            return self._control
        return self._treated

    def _around_one(self, sigma: float) -> float:
        return float(np.exp(self._rng.normal(-sigma * sigma / 2, sigma)))

    def drawn(self, arrival: Arrival, ids: Ids, attempt: int, outcome: Outcome) -> tuple[Arm, Sequence]:
        """The arm that an attempt falls into, by chance, and what decoding will be for it."""
        treated = self._control is None or next(self._luck) * self.pool.control_every >= 1
        arm = self._treated if treated or self._control is None else self._control
        speculation = arm.serving.speculation
        if speculation is None or arrival.output_tokens < 2:
            return arm, Sequence(arrival, ids, attempt, outcome, None, 0)
        holds = drafting.survival(speculation, arrival.temperature, arm.acceptance, arm.later_acceptance)
        drafted = drafting.drawn(self._rng, arrival.output_tokens - 1, holds, speculation.coverage)
        return arm, Sequence(arrival, ids, attempt, outcome, drafted, speculation.draft_tokens)

    def routed(self, arm: Arm, sequence: Sequence) -> tuple[Group, Replica]:
        """The group and the worker that a sequence is sent to."""
        takers = arm.takers
        affinity = arm.serving.affinity
        chosen = _drawn_to(arm, affinity, sequence.arrival) if affinity else None
        if affinity and chosen and affinity.cap:
            mean = sum(worker.load for _, worker in takers) / len(takers)
            if chosen[1].load > affinity.cap * mean + MARGIN:
                chosen = None
        return chosen or self._lighter(takers)

    def _lighter(self, takers: list[tuple[Group, Replica]]) -> tuple[Group, Replica]:
        """The less loaded of two that are drawn."""
        if len(takers) == 1:
            return takers[0]
        one, other = (takers[int(next(self._luck) * len(takers))] for _ in range(2))
        return one if one[1].load <= other[1].load else other


def _drawn_to(arm: Arm, affinity: Affinity, arrival: Arrival) -> tuple[Group, Replica]:
    """Where a prefix belongs: the same worker as long as it is among the takers, and few move when they change (highest hash wins)."""
    key = arrival.tenant if affinity.by == "tenant" else f"{arrival.tenant}/{arrival.session}"
    if key not in arm.homes:
        arm.homes[key] = max(arm.takers, key=lambda taker: hashlib.blake2b(f"{key} {taker[1].deployment.replica}".encode()).digest())
    return arm.homes[key]
