"""The two figures of docs/statistics-explained.md, drawn anew.

    leverwatch demo --port 0 --for 300 --data DIR     # the scenario batch-grows
    python benchmarks/explained.py --data DIR

`evidence.svg` is of that demo: the gain of two hours, and the evidence of a loss of more than 2 %, block by block. `looking.svg` is of
simulated days without any effect: on what share of them a test says "worse" at least once, by how long one has looked.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
import vl_convert

import leverwatch
from dashboards.theme import LIGHT
from pipeline.evidence_families import NULLS
from pipeline.inference import detector

IMAGES = Path(__file__).parents[1] / "docs/images"
LIMIT, ALPHA, BLOCKS, PER_HOUR, BEGIN = -0.02, 0.05, 288, 12, 6
DAYS = 4000
MOST_SHOWN = 1e5
COLORS = [LIGHT["bad"], LIGHT["control"], LIGHT["treated"]]
ASKED = """
    select until, segment, gain, gain_low, gain_high, evidence_below[$place] as log_m, tests, verdict_at
    from effects, (select max(decided_at) as verdict_at from flips where lever = 'speculation' and state_after = 'off_recommended')
    where lever = 'speculation' and metric = 'net_itl_s' and evidence_below is not null
        and segment = (select any_value(segment) from flips where lever = 'speculation' and state_after = 'off_recommended')
        and until between verdict_at - interval '5 hours' and verdict_at + interval '1 hour'
    order by until
"""


def main() -> None:
    """Draws both into docs/images."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, help="the folder of a demo, served or not")
    rows = leverwatch.connect(parser.parse_args().data).sql(ASKED, {"place": NULLS.index(LIMIT) + 1})
    _write("evidence", _evidence(rows))
    _write("looking", _looking(_looked()))


def _evidence(rows: pl.DataFrame) -> alt.VConcatChart:
    """Gain above, evidence below, of one segment; `log_m` is the logarithm of how many times the stake there is."""
    tests, verdict_at = rows["tests"][-1], rows["verdict_at"][0]
    mark = tests * BLOCKS / ALPHA
    rows = rows.with_columns(pl.col("log_m").exp().clip(1.0, MOST_SHOWN).alias("times")).with_columns(
        pl.col("gain", "gain_low", "gain_high").clip(-0.6, 0.6)
    )
    time = alt.X("until:T", title="UTC", axis=alt.Axis(format="%H:%M", grid=False), scale=alt.Scale(type="utc"))
    percent = alt.Axis(format="+.0%")
    gain = alt.Chart(rows).mark_line(color=LIGHT["treated"]).encode(time, alt.Y("gain:Q", title="gain of two hours", axis=percent))
    band = (
        alt.Chart(rows).mark_area(color=LIGHT["treated"], opacity=0.15).encode(time, alt.Y("gain_low:Q", title=""), alt.Y2("gain_high:Q"))
    )
    limit = _level(LIMIT, LIGHT["bad"], "limit: -2 %")
    logs = alt.Scale(type="log", domain=[1, MOST_SHOWN])
    times = alt.Chart(rows).mark_line(color=LIGHT["bad"], interpolate="step-after")
    times = times.encode(
        time, alt.Y("times:Q", title="times the stake", scale=logs, axis=alt.Axis(values=[1, 10, 100, 1e3, 1e4, 1e5], format=",.0f"))
    )
    needed = _level(mark, LIGHT["ink"], f"what it takes: {mark:,.0f}")
    said = pl.DataFrame({"until": [verdict_at], "text": ["recommended"]})
    when = alt.Chart(said).mark_rule(color=LIGHT["ink"], strokeDash=[4, 3]).encode(time)
    word = alt.Chart(said).mark_text(align="left", dx=4, color=LIGHT["ink"]).encode(time, y=alt.value(12), text="text:N")
    above = alt.layer(band, gain, limit, when, word).properties(width=620, height=150)
    below = alt.layer(times, needed, when).properties(width=620, height=170)
    return alt.vconcat(above, below).resolve_scale(x="shared")


def _level(value: float, color: str, text: str) -> alt.LayerChart:
    at = pl.DataFrame({"value": [value], "text": [text]})
    rule = alt.Chart(at).mark_rule(color=color, strokeDash=[2, 2]).encode(y="value:Q")
    return rule + alt.Chart(at).mark_text(align="left", dx=4, dy=-7, color=color).encode(x=alt.value(0), y="value:Q", text="text:N")


def _looked(seed: int = 1) -> pl.DataFrame:
    """One row per hour and way of looking: the share of days without effect on which "worse" was said by then."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((DAYS, BLOCKS + 24))  # two hours before, so that a window is full at midnight
    day, sums = z[:, 24:], np.cumsum(z, axis=1)
    blocks = np.arange(1, BLOCKS + 1)
    so_far = np.cumsum(day, axis=1) / np.sqrt(blocks) > 1.96
    so_far[:, : BEGIN - 1] = False
    window = (sums[:, 24:] - sums[:, :-24]) / np.sqrt(24) > 1.96
    ways = {"95 % interval of the last two hours": window, "95 % interval of the day so far": so_far, "evidence": _evident(rng, day)}
    hours = np.arange(PER_HOUR, BLOCKS + 1, PER_HOUR)
    return pl.concat(
        pl.DataFrame({"hour": hours // PER_HOUR, "way": way, "share": np.maximum.accumulate(said, axis=1)[:, hours - 1].mean(axis=0)})
        for way, said in ways.items()
    )


def _evident(rng: np.random.Generator, day: detector.Reals) -> detector.Truths:
    """Whether evidence passes its mark in a block of a day, after a day of the same."""
    mark = detector.threshold(BLOCKS, ALPHA)
    log_m = detector.start(DAYS)
    for _ in range(BLOCKS):
        log_m = detector.step(log_m, rng.standard_normal(DAYS))
    passed, was = np.zeros((DAYS, BLOCKS), dtype=bool), detector.alarms(log_m, mark)
    for block in range(BLOCKS):
        log_m = detector.step(log_m, day[:, block])
        is_past = detector.alarms(log_m, mark)
        passed[:, block], was = is_past & ~was, is_past
    return passed


def _looking(shares: pl.DataFrame) -> alt.LayerChart:
    last = shares.filter(pl.col("hour") == 24)
    print(last)
    color = alt.Color("way:N", scale=alt.Scale(domain=last["way"].to_list(), range=COLORS), legend=None)
    x = alt.X("hour:Q", title="hours looked, every five minutes", scale=alt.Scale(domain=[0, 34]), axis=alt.Axis(values=[0, 6, 12, 18, 24]))
    y = alt.Y("share:Q", title="days with a false alarm so far", axis=alt.Axis(format=".0%"))
    lines = alt.Chart(shares).mark_line(strokeWidth=2).encode(x, y, color)
    words = alt.Chart(last).mark_text(align="left", dx=5).encode(x, y, color, text="label:N")
    named = words.transform_calculate(label="datum.way + ': ' + format(datum.share, '.1%')")
    return (lines + named).properties(width=620, height=260)


def _write(name: str, chart: alt.VConcatChart | alt.LayerChart) -> None:
    looks = chart.configure(background="#ffffff", font="sans-serif").configure_view(stroke=None)
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(looks.to_json()))


if __name__ == "__main__":
    main()
