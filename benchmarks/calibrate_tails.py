"""A number of simulated days in, tables of docs/tails.md out: tails, percentiles, errors, the split of arms, control replicas.

    PYTHONPATH=tests python benchmarks/calibrate_tails.py --days 300

The figures marked earlier are those by which the design was chosen, made by other code on other seeds. `--part` chooses among the tables.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from calibrate import delay, header, row
from inference_days import CONTROL, MINUTES, SCENARIOS, TREATED, Scenario, days
from inference_tails import BINS, FIRST, first_alarms, slower, stalling, tail_days
from inference_watch import watch

from pipeline.inference import incidents, quantile, rotation, sample_ratio

Reals = npt.NDArray[np.float64]
SEED, CHUNK = 60_000, 100
CHANGED_AT = 600  # minutes
EARLIER = {0.5: ("0.035", "25", "400"), 0.95: ("0.040", "35", "55"), 0.99: ("0.055", "170", "35")}
EDGES = 0.002 * 1.02 ** np.arange(FIRST, FIRST + BINS + 1)


def main() -> None:
    """Prints the chosen tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=300)
    parser.add_argument("--part", choices=sorted(PARTS), action="append")
    args = parser.parse_args()
    for part in args.part or PARTS:
        began = time.monotonic()
        print(f"\n### {part}\n")
        for line in PARTS[part](args.days):
            print(line, flush=True)
        print(f"\n{args.days} days, {time.monotonic() - began:.0f} s.")


def tails(count: int) -> Iterator[str]:
    """Exceedances of control's percentile of the last hour; blocks of 100, 200 and 1,000 control requests."""
    heads = ("control", "percentile", "false, harm", "false, benefit", "earlier", "all x 1.2", "earlier", "one in 20 stalls x 3", "earlier")
    yield from header(*heads)
    for control, scenario in (("5 %", "N1 base"), ("10 %", "N5 10 % control")):
        found: dict[float, list[list[Reals]]] = {share: [] for share in EARLIER}
        for first in range(0, count, CHUNK):
            plain = tail_days(SCENARIOS[scenario], range(SEED + first, SEED + min(first + CHUNK, count)))
            harms = plain, slower(plain, 9, CHANGED_AT // 5), stalling(plain, 0.05, CHANGED_AT // 5)
            for share, kept in found.items():
                kept.append([*(first_alarms(one, share) for one in harms), first_alarms(plain, share, -1.0)])
        for share, kept in found.items():
            harm, shifted, stalled, benefit = (np.concatenate(parts) for parts in zip(*kept, strict=True))
            rates = [f"{np.isfinite(one).mean():.3f}" for one in (harm, benefit)]
            late = [text for one, was in zip((shifted, stalled), EARLIER[share][1:], strict=True) for text in (delay(one, CHANGED_AT), was)]
            yield row(control, f"p{share * 100:g}", *rates, EARLIER[share][0], *late)


def percentiles(count: int) -> Iterator[str]:
    """Intervals of treated's percentile over control's without an effect, looked at each hour from the fourth on."""
    yield from header("percentile", "made of", "misses 1 on so many days", "width at the day's end (high / low)")
    looked = {(share, way): [] for share in EARLIER for way in WAYS}
    for seed in range(count):
        day = tail_days(SCENARIOS["N1 base"], [SEED + seed])[0].astype(np.float64)
        for (share, way), kept in looked.items():
            kept.append([WAYS[way](day[:until], share) for until in range(48, len(day) + 1, 12)])
    for (share, way), kept in looked.items():
        missed = np.mean([any(not one.low <= 1.0 <= one.high for one in looks) for looks in kept])
        widths = [looks[-1].high / looks[-1].low if looks[-1].low > 0 else np.inf for looks in kept]
        yield row(f"p{share * 100:g}", way, f"{missed:.3f}", f"{np.median(widths):.2f}")


def _apart(day: Reals, share: float) -> quantile.Bounds:
    return quantile.ratio(*(quantile.bounds(day[:, arm], EDGES, share, 0.025) for arm in (TREATED, CONTROL)))


def _paired(day: Reals, share: float) -> quantile.Bounds:
    return quantile.paired_ratio(day[:, TREATED], day[:, CONTROL], EDGES, share, 0.05)


WAYS = {"an interval for each arm": _apart, "pairs of blocks": _paired}


def errors(count: int) -> Iterator[str]:
    """Incidents at 400 requests a minute, 5 % of them control's, looked at each minute."""
    yield from header("truth", "alarms on so many days", "earlier", "delay p50/p90, min", "earlier")
    for name, rates, burst, was in (
        ("0.1 % in both, one by one", (0.001, 0.001), 1, ("0.035", "")),
        ("0.1 % in both, bursts of 15, every error counted", (0.001, 0.001), 15, ("0.75", "")),
        ("0.5 % against 0.1 %", (0.005, 0.001), 1, ("", "60")),
    ):
        rng, state, found = np.random.default_rng(SEED), incidents.State.start(count), np.full(count, np.inf)
        for minute in range(MINUTES):
            arms = [
                burst * rng.poisson(rate * requests / burst, count).astype(float) for rate, requests in zip(rates, (380, 20), strict=True)
            ]
            state = incidents.step(state, *arms, 0.95)
            found = np.where(incidents.log_e(state) >= np.log(20), np.minimum(found, minute + 1), found)
        late = delay(found, 0) if rates[0] != rates[1] else ""
        yield row(name, f"{np.isfinite(found).mean():.3f}", was[0], late, was[1])


def split(count: int) -> Iterator[str]:
    """The split of arms, 5 % of 400 requests a minute meant for control, looked at each minute."""
    yield from header("truth", "found off on so many days", "earlier", "delay p50/p90, min", "earlier")
    for name, shares, was in (
        ("5 %", (0.05, 0.05), ("0.02", "")),
        ("4 %", (0.04, 0.04), ("", "11")),
        ("5 %, from minute 720 on 4 %", (0.05, 0.04), ("", "")),
    ):
        rng, state, found = np.random.default_rng(SEED), sample_ratio.State.start(count), np.full(count, np.inf)
        for minute in range(MINUTES):
            total = rng.poisson(400, count)
            control = rng.binomial(total, shares[minute >= MINUTES // 2])
            state = sample_ratio.step(state, (total - control).astype(float), control.astype(float), 0.95)
            off = sample_ratio.is_off(state, 0.95, alpha=0.05, blocks_per_cycle=MINUTES)
            found = np.where(off, np.minimum(found, minute + 1), found)
        late = delay(found, MINUTES // 2 if shares[0] == 0.05 else 0) if shares[1] != 0.05 else ""
        yield row(name, f"{np.isfinite(found).mean():.3f}", was[0], late, was[1])


def fixed(count: int) -> Iterator[str]:
    """Two fixed control replicas of forty, 2 % between replicas: why the rule refuses, and what the widened null does."""
    yield from header("null", "false, harm", "false, benefit")
    plain = days(SCENARIOS["N8 fixed control"], range(SEED, SEED + count))
    margin = rotation.margin(0.02, 2, 38)
    for name, theta0, sides in (("gain >= 0", 1.0, 2), (f"gain >= -{margin:.1%}", 1 + margin, 1)):
        rates = watch(plain, 5, theta0=theta0).at_all()
        yield row(name, *(f"{rate:.3f}" for rate in rates[:sides]), *[""] * (2 - sides))


def rotating(count: int) -> Iterator[str]:
    """Control that moves on every 30 minutes, one or two replicas at once, in fleets of any size: when replicas' own speeds cancel."""
    yield from header("replicas", "control at once", "requests a replica-minute", "between replicas", "false, harm", "false, benefit")
    small = [(2, 1), (4, 1), (4, 2), (8, 1), (8, 2), (16, 1), (16, 2)]
    cases = [*((*fleet, 40.0, 0.02) for fleet in small), (40, 1, 10.0, 0.02), *((*fleet, 40.0, 0.05) for fleet in ((2, 1), (4, 1), (8, 1)))]
    for replicas, controls, rate, sd in cases:
        scenario = Scenario(rate_per_min=rate, controls=controls, rotation_min=30, replica_sd=sd, replicas=replicas)
        found = np.zeros(2)
        for first in range(0, count, CHUNK):
            some = range(SEED + first, SEED + min(first + CHUNK, count))
            found += np.array(watch(days(scenario, some), 5).at_all()) * len(some)
        yield row(str(replicas), str(controls), f"{rate:g}", f"{sd:.0%}", *(f"{alarmed / count:.3f}" for alarmed in found))


PARTS: dict[str, Callable[[int], Iterator[str]]] = {
    "tails": tails,
    "percentiles": percentiles,
    "errors": errors,
    "split": split,
    "fixed": fixed,
    "rotating": rotating,
}


if __name__ == "__main__":
    main()
