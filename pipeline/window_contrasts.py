"""Both arms' sums by pair and block in, the columns of their rows of `effects` out: values, the gain and its interval, what is missing."""

from __future__ import annotations

import functools

import numpy as np
import polars as pl

from pipeline.window_sums import Arm, Reals, Truths, Whole

MIN_REQUESTS_PER_ARM = 5
ALPHA = 0.05
_NUMBERS = ("value_a", "value_b", "gain", "gain_low", "gain_high")
_NO_CONTROL = "no control arm: nothing to compare with"
_ZERO = "control's value is 0: no ratio of the two"
_FEW = f"no block has {MIN_REQUESTS_PER_ARM} requests in each arm; at most {{}}"


def avt_radius(n: int, variance: float, alpha: float = ALPHA, phi: float = 8.0) -> float:
    """The half-width of the anytime-valid t interval of a mean of `n` values (Wang and Ramdas, arXiv 2310.03722).

    Infinite while there are too few values to say anything.
    """
    nu, r = n - 1, phi / (phi + n)
    if nu < 1:
        return float("inf")
    a = np.exp(2 / (nu + 1) * (np.log(1 / alpha) - 0.5 * np.log(r)))
    if a * r >= 1:
        return float("inf")
    return float(np.sqrt(nu * (a - 1) / (1 - a * r)) * np.sqrt(variance / n))


def alone(treated: Arm) -> pl.DataFrame:
    """One row per pair of the treated arm's value alone."""
    value, blocks, n, coverage = _plain(treated)
    nothing = np.full(len(n), np.nan)
    return _rows(value, nothing, nothing, nothing, blocks, n, np.zeros_like(n), coverage).with_columns(
        pl.lit(None, pl.String).alias("arm_b"), pl.lit("premise").alias("basis"), pl.lit(None, pl.String).alias("note")
    )


def contrasted(treated: Arm, control: Arm, has_control: Truths, sign: float) -> pl.DataFrame:
    """One row per pair: control's blocks weigh as treated's do, so that gain = 1 - value_a / value_b, positive when the lever helps.

    `sign` is -1 where a higher value is better. Only blocks in which both arms have enough requests are compared.
    """
    value, blocks, n, coverage = _plain(treated)
    a, level = _ratio(treated.num, treated.den), _ratio(control.num, control.den)
    enough = (treated.n >= MIN_REQUESTS_PER_ARM) & (control.n >= MIN_REQUESTS_PER_ARM)
    paired = enough & np.isfinite(a) & np.isfinite(level) & has_control[:, None]
    count = paired.sum(axis=1)
    den = np.where(paired, treated.den, 0.0)
    got, expected = np.where(paired, treated.num, 0.0), np.where(paired, den * level, 0.0)
    mine, wanted = got.sum(axis=1), expected.sum(axis=1)
    value_a = np.where(count > 0, _ratio(mine, den.sum(axis=1)), value)
    gain, radius = _interval(got, expected, paired, sign)
    made = _rows(
        value_a,
        _ratio(wanted, den.sum(axis=1)),
        gain,
        radius,
        np.where(has_control, count, blocks),
        np.where(has_control, np.where(paired, treated.n, 0.0).sum(axis=1), n),
        np.where(paired, control.n, 0.0).sum(axis=1),
        np.where(has_control, np.minimum(coverage, _plain(control)[3]), coverage),
    )
    least = np.minimum(treated.n.max(axis=1, initial=0), control.n.max(axis=1, initial=0))
    return made.with_columns(_said(has_control, count, wanted, least))


def _plain(arm: Arm) -> tuple[Reals, Whole, Reals, Reals]:
    """(an arm's value, its blocks, its requests that count, the share of its requests that do), per pair."""
    n = arm.n.sum(axis=1)
    share = np.divide(n, arm.requests, out=np.zeros_like(n), where=arm.requests > 0)
    return _ratio(arm.num.sum(axis=1), arm.den.sum(axis=1)), (arm.n > 0).sum(axis=1), n, share


def _interval(got: Reals, expected: Reals, paired: Truths, sign: float) -> tuple[Reals, Reals]:
    """(the gain of what treated's blocks got over what control's level gives the same requests, half of its anytime-valid interval)."""
    count, wanted = paired.sum(axis=1), expected.sum(axis=1)
    known = wanted > 0
    gain = np.where(known, sign * (1 - _ratio(got.sum(axis=1), wanted)), np.nan)
    share = np.divide(count, wanted, out=np.zeros_like(wanted), where=known)
    rest = (sign * (expected - got) - gain[:, None] * expected) * share[:, None]
    variance = np.divide((rest**2).sum(axis=1), count - 1, out=np.full_like(wanted, np.nan), where=known & (count > 2))
    return gain, _factors(paired.shape[1])[count] * np.sqrt(variance)


@functools.cache
def _factors(blocks: int) -> Reals:
    """What the deviation of so many values, up to `blocks`, is multiplied by to give the interval's half; NaN where there is none."""
    factors = np.array([avt_radius(n, 1.0) if n > 2 else np.inf for n in range(blocks + 1)])
    return np.where(np.isfinite(factors), factors, np.nan)


def _rows(
    value_a: Reals, value_b: Reals, gain: Reals, radius: Reals, blocks: Whole, n_a: Reals, n_b: Reals, coverage: Reals
) -> pl.DataFrame:
    numbers = dict(zip(_NUMBERS, (value_a, value_b, gain, gain - radius, gain + radius), strict=True))
    whole = {name: one.astype(np.int64) for name, one in (("blocks", blocks), ("n_a", n_a), ("n_b", n_b))}
    made = pl.DataFrame({**whole, **numbers, "coverage": coverage})
    return made.with_columns(pl.col(_NUMBERS).fill_nan(None))


def _said(has_control: Truths, count: Whole, wanted: Reals, least: Reals) -> list[pl.Expr]:
    compares = pl.lit(pl.Series(has_control))
    few = pl.format(_FEW, pl.lit(pl.Series(least.astype(np.int64))))
    note = pl.when(~compares).then(pl.lit(_NO_CONTROL)).when(pl.lit(pl.Series(count)) == 0).then(few)
    return [
        pl.when(compares).then(pl.lit("control")).alias("arm_b"),
        pl.when(compares).then(pl.lit("control")).otherwise(pl.lit("none")).alias("basis"),
        note.when(pl.lit(pl.Series(wanted <= 0))).then(pl.lit(_ZERO)).alias("note"),
    ]


def _ratio(num: Reals, den: Reals) -> Reals:
    return np.divide(num, den, out=np.full_like(num, np.nan), where=den > 0)
