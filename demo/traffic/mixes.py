"""Synthetic traffic: a scenario's mixes in, arrivals of a block of five minutes out, the same for the same seed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from demo.scenarios.layout import Mix, Scenario
from demo.traffic.arrivals import Arrival
from demo.traffic.days import burst, load, turned
from demo.traffic.prompts import Prompts, Shape

BLOCK_S = 300.0


class Mixes:
    """The arrivals of a scenario, block after block: a conversation goes on from one to the next."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        blocks = {pool.name: pool.kv_block_tokens for pool in scenario.pools}
        self._mixes = [_Mix(scenario, mix, blocks[mix.pool], seed) for mix in scenario.traffic]

    def block(self, number: int) -> list[Arrival]:
        """The arrivals of block `number`, which begins at `number` * 300 s, in order of time. Blocks are asked for in order."""
        arrivals = [arrival for mix in self._mixes for arrival in mix.block(number)]
        arrivals.sort(key=_at_s)
        return arrivals


def _at_s(arrival: Arrival) -> float:
    return arrival.at_s


class _Mix:
    def __init__(self, scenario: Scenario, mix: Mix, block_tokens: int, seed: int) -> None:
        self._scenario, self._mix, self._seed = scenario, mix, seed
        self._key = zlib.crc32(mix.name.encode())
        self._prompts = Prompts(mix, block_tokens, self._key)

    def block(self, number: int) -> Iterator[Arrival]:
        rng = np.random.default_rng([self._seed, self._key, number & 0xFFFFFFFF])
        hour = (number + 0.5) * BLOCK_S / 3600
        mix = self._mix
        at_s = number * BLOCK_S + np.sort(rng.random(rng.poisson(self._expected(number, hour)))) * BLOCK_S
        drawn = self._drawn(rng, len(at_s), hour)
        prompts = self._prompts.drawn(rng, drawn["prompt"], drawn["tenant"], self._shape(hour))
        asked = zip(at_s.tolist(), prompts, drawn["output"].tolist(), drawn["temperature"].tolist(), strict=True)
        for moment, (tenant, session, tokens, blocks), output, temperature in asked:
            yield Arrival(moment, mix.pool, tenant, session, tokens, output, mix.max_tokens, temperature, mix.top_p, blocks)

    def _shape(self, hour: float) -> Shape:
        return Shape(
            longest=int(self._mix.input_tokens[1] * self._turned("input_tokens", hour)),
            system_tokens=int(self._mix.system_tokens * self._turned("system_tokens", hour)),
            goes_on=1 - 1 / max(1.0, self._mix.turns * self._turned("turns", hour)),
        )

    def _expected(self, number: int, hour: float) -> float:
        day = self._mix.day or self._scenario.day
        factor = load(day, hour) * burst(day, self._mix.name, number, self._seed) * self._turned("requests_per_s", hour)
        return self._mix.requests_per_s * BLOCK_S * factor

    def _drawn(self, rng: np.random.Generator, n: int, hour: float) -> dict[str, npt.NDArray[Any]]:
        mix = self._mix
        low, high = (max(1.0, edge * self._turned("input_tokens", hour)) for edge in mix.input_tokens)
        prompt = np.exp(rng.uniform(np.log(low), np.log(high + 1), size=n)).astype(np.int64).clip(int(low), int(high))
        median = mix.output_median_tokens * self._turned("output_tokens", hour)
        output = rng.lognormal(np.log(median), mix.output_sigma, size=n).astype(np.int64).clip(1, mix.max_tokens)
        temperature = rng.choice(np.array(mix.temperatures), size=n) * self._turned("temperature", hour)
        rank = np.arange(1, mix.tenants + 1) ** -(mix.tenant_skew * self._turned("tenant_skew", hour))
        tenant = rng.choice(mix.tenants, size=n, p=rank / rank.sum())
        return {"prompt": prompt, "output": output, "temperature": temperature.round(3), "tenant": tenant}

    def _turned(self, knob: str, hour: float) -> float:
        return turned(self._scenario.changes, self._mix.name, knob, hour)
