"""A number of simulated days in, the tables of docs/statistics.md out: false alarms and delays, ours and those of the usual tests.

    PYTHONPATH=tests python benchmarks/calibrate.py --days 500

`make calibrate` does that; some minutes on one core. Beside each figure stands the earlier one that the design was chosen by, made by other
code on other seeds (500 days for the usual tests, 300 for ours); (!) marks what is worse than it by more than 3 standard errors of the two.
`--part` chooses among the tables.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import calibrate_earlier as earlier
import inference_naive as naive
import numpy as np
import numpy.typing as npt
from calibrate_table import against, alike, delay, ever, header, row, shown
from inference_days import SCENARIOS, days, harmed, on_end
from inference_ratios import acceptance_days
from inference_watch import ACCEPTANCE, Alarms, since_start, watch
from scipy.stats import binom

from pipeline.inference import detector, multiplicity

Reals = npt.NDArray[np.float64]
SEED = 20_000
CHANGED_AT, TURNED_AT, WEEK_TURNED_AT = 600, 900, 6_000  # minutes
EFFECTS = (0.05, 0.10, 0.20)
BLOCKS = {
    "N3 heavy tail": (10,),
    "N4 one control, 4 req/min": (30,),
    "N5 10 % control": (5,),
    "N6 noise by load": (5,),
    "N7 slow replicas": (10, 30),
}
LEAST_DAYS = 5


def main() -> None:
    """Prints the chosen tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=500)
    parser.add_argument("--part", choices=sorted(PARTS), action="append")
    args = parser.parse_args()
    if args.days < LEAST_DAYS:
        parser.error(f"--days: {args.days}; {LEAST_DAYS} or more are taken, since some parts play five days on end")
    for part in args.part or PARTS:
        began = time.monotonic()
        print(f"\n### {part}\n")
        for line in PARTS[part](args.days):
            print(line, flush=True)
        print(f"\n{args.days} days, {time.monotonic() - began:.0f} s.")


def usual(count: int) -> Iterator[str]:
    """The tests that are usually looked at each minute."""
    plain = days(SCENARIOS["N1 base"], range(SEED, SEED + count))
    yield from header("test, nominal 5 %", "alarms falsely on so many days", "earlier", "at a single look")
    for unit in ("request", "cluster"):
        for window in (5, 15, 60, 240, None):
            found = naive.significant(plain, window, unit)
            name = f"Welch's t on {unit}s, {f'last {window} min' if window else 'since the start'}"
            yield row(name, f"{naive.per_day(found):.3f}", f"{earlier.USUAL[unit, window]:.2f}", f"{naive.at_a_look(found):.3f}")
    found = naive.significant(plain, 15, "cluster", 0.05 / 96)
    yield row("Welch's t on clusters, last 15 min, Bonferroni over 96 windows", f"{naive.per_day(found):.3f}", "0.97", "")
    for minutes in (1, 5, 10, 30):
        found = naive.paired(plain, minutes)[:, max(5, 100 // minutes) :]
        yield row(
            f"paired {minutes}-min blocks, plain z since the start",
            f"{naive.per_day(found):.3f}",
            f"{earlier.PAIRED[minutes]:.2f}",
            f"{naive.at_a_look(found):.3f}",
        )


def intervals(count: int) -> Iterator[str]:
    """Intervals since the first minute: how often they miss the truth at any block."""
    plain = days(SCENARIOS["N1 base"], range(SEED, SEED + count))
    yield from header(
        "interval since the start", "block, min", "misses on so many days", "earlier", "with the long-run variance", "earlier"
    )
    for kind, asymptotic in (("AV-t, from 3 blocks", False), ("AsympCS, from 20 blocks", True)):
        for minutes in (5, 10, 30):
            missed = [ever(since_start(plain, minutes, asymptotic=asymptotic, long_run=long_run)) for long_run in (False, True)]
            shown = [
                text
                for rate, was in zip(missed, earlier.INTERVALS[asymptotic][minutes], strict=True)
                for text in (against(rate, was, count, 500), f"{was:.3f}")
            ]
            yield row(kind, str(minutes), *shown)


def alarms(count: int) -> Iterator[str]:
    """The detector on each scenario."""
    most = int(binom.ppf(0.99, count, 0.05))
    yield f"A true rate of 5 % would be exceeded with a probability of 1 % above {most / count:.3f}.\n"
    yield from header(
        "scenario",
        "block, min",
        "false, harm",
        "earlier",
        "false, benefit",
        "earlier",
        *(f"+{effect:.0%}: p50/p90, min" for effect in EFFECTS),
        "earlier",
    )
    for name, scenario in SCENARIOS.items():
        plain = days(scenario, range(SEED, SEED + count))
        for minutes in BLOCKS.get(name, (5, 10)):
            was = earlier.ALARMS.get((name, minutes), earlier.NOTHING)
            found = watch(plain, minutes).at_all()
            sides = [
                text for rate, before in zip(found, was.false, strict=True) for text in (against(rate, before, count, 300), shown(before))
            ]
            late = [delay(watch(harmed(plain, effect, CHANGED_AT), minutes).harm, CHANGED_AT) for effect in EFFECTS]
            yield row(name, str(minutes), *sides, *late, was.delays)


def methods(count: int) -> Iterator[str]:
    """The same days for each method: +10 % at minute 600; and 15 hours 20 % faster, then slower."""
    plain = days(SCENARIOS["N1 base"], range(SEED, SEED + count))
    good = harmed(plain, -0.20, 0, TURNED_AT)
    ways: dict[str, Callable[[Reals], Alarms]] = {
        "e-SR": lambda chosen: watch(chosen, 5),
        "e-SR, phi 1.0, K 4": lambda chosen: watch(chosen, 5, phi=1.0, lags=4),
        "e-SR, Bennett": lambda chosen: watch(chosen, 5, tails="bennett"),
        "AsympCS since the start": lambda chosen: since_start(chosen, 5, asymptotic=True),
        "AV-t since the start": lambda chosen: since_start(chosen, 5, asymptotic=False),
    }
    yield from header(
        "method, 5-min blocks", "+10 % at minute 600", "earlier", *(f"15 good hours, then +{effect:.0%}" for effect in EFFECTS), "earlier"
    )
    for name, way in ways.items():
        turned = [delay(way(harmed(good, effect, TURNED_AT)).harm, TURNED_AT) for effect in EFFECTS]
        yield row(
            name, delay(way(harmed(plain, 0.10, CHANGED_AT)).harm, CHANGED_AT), earlier.METHODS[name][0], *turned, earlier.METHODS[name][1]
        )


def weeks(count: int) -> Iterator[str]:
    """Five days on end a stream: false alarms a day, and how soon a lever that paid for four days is found harmful."""
    yield from header(
        "5 days on end", "false a day, harm", "false a day, benefit", "gain 10 %, then +5 %: p50/p90, min", "gain 20 %, then +10 %"
    )
    for name in ("N1 base", "N2 rotating"):
        plain = on_end(days(SCENARIOS[name], range(SEED, SEED + count - count % 5)), 5)
        rates = [f"{rate / 5:.3f}" for rate in watch(plain, 5).at_all()]
        turned = [harmed(harmed(plain, -gain, 0, WEEK_TURNED_AT), loss, WEEK_TURNED_AT) for gain, loss in ((0.10, 0.05), (0.20, 0.10))]
        yield row(name, *rates, *(delay(watch(chosen, 5).harm, WEEK_TURNED_AT) for chosen in turned))


def ratios(count: int) -> Iterator[str]:
    """Draft acceptance of two arms, while what is talked about drifts; delays of a fifth of the days, which must be drawn anew."""
    plain = acceptance_days(range(SEED, SEED + count))
    worse = {effect: acceptance_days(range(SEED, SEED + count // 5), effect, CHANGED_AT) for effect in EFFECTS}
    yield from header(
        "draft acceptance, block, min", "false, harm", "false, benefit", *(f"-{effect:.0%}: p50/p90, min" for effect in EFFECTS)
    )
    for minutes in (5, 10):
        found = watch(plain, minutes, metric=ACCEPTANCE).at_all()
        late = [delay(watch(worse[effect], minutes, metric=ACCEPTANCE).harm, CHANGED_AT) for effect in EFFECTS]
        yield row(str(minutes), *(f"{rate:.3f}" for rate in found), *late)


def neighbors(count: int) -> Iterator[str]:
    """How alike neighboring blocks are, by block length."""
    lengths = (5, 10, 20, 30, 60)
    yield from header("median lag-1 correlation of blocks of", *(f"{minutes} min" for minutes in lengths))
    for name in ("N1 base", "N7 slow replicas"):
        plain = days(SCENARIOS[name], range(SEED, SEED + count))
        yield row(name, *(f"{alike(plain, minutes):.2f}" for minutes in lengths))


def families(count: int) -> Iterator[str]:
    """200 streams of a day of 288 blocks, 20 of them harmed by half a standard deviation a block, correlation 0 and 0.3."""
    yield from header("200 streams, 20 harmed; correlation", "e-BH at 0.10: false share", "power", "Bonferroni at 0.05: any false", "power")
    for correlation in (0.0, 0.3):
        told = np.array([_family(np.random.default_rng(SEED + number), correlation) for number in range(count)])
        yield row(f"{correlation:g}", *(f"{value:.3f}" for value in told.mean(axis=0)))


def _family(rng: np.random.Generator, correlation: float) -> tuple[float, float, float, float]:
    harm = np.arange(200) < 20
    log_m, top = detector.start(200), np.full(200, -np.inf)
    for _ in range(288):
        z = np.sqrt(correlation) * rng.normal() + np.sqrt(1 - correlation) * rng.normal(size=200) + 0.5 * harm
        log_m = detector.step(log_m, z)
        top = np.maximum(top, detector.log_e(log_m))
    believed = multiplicity.ebh(detector.log_e(log_m) - np.log(288), 0.10)
    latched = top >= np.log(multiplicity.bonferroni_threshold(200, 288, 0.05))
    return (believed & ~harm).sum() / max(believed.sum(), 1), believed[harm].mean(), float(latched[~harm].any()), latched[harm].mean()


PARTS: dict[str, Callable[[int], Iterator[str]]] = {
    "usual": usual,
    "intervals": intervals,
    "alarms": alarms,
    "methods": methods,
    "weeks": weeks,
    "ratios": ratios,
    "neighbors": neighbors,
    "families": families,
}


if __name__ == "__main__":
    main()
