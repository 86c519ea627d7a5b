"""`leverwatch calibrate`: splits the replicas of an arm in two at random, and says by how much scales must be widened."""

from __future__ import annotations

import argparse
from typing import Any

import polars as pl

from leverwatch.cli import common
from leverwatch.lever_calibration import SINCE
from pipeline.calibrating import SPLITS
from pipeline.calibrating_store import SCHEMA

UNSHOWN = ("phis", "rates", "contrasts", "arm", "since", "until", "missing", "splits", "replicas", "segments")


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "find by how much each metric's scale must be widened: replicas of one arm are split in two, where no effect is to be found"
    parser = subparsers.add_parser("calibrate", help=told)
    common.add_data(parser)
    parser.add_argument("--lever", metavar="L", help="such as speculation (default: every lever that has been compared)")
    parser.add_argument("--since", default=SINCE, metavar="T", help=f"ISO 8601, or an age before the newest block (default: {SINCE})")
    parser.add_argument("--splits", type=int, default=SPLITS, metavar="N", help=f"how often replicas are split (default: {SPLITS})")
    parser.add_argument("--apply", action="store_true", help="keep it: evidence is widened so from the next block on")
    common.add_format(parser, "table", "json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what is recommended; 3 where there is too little to split."""
    with common.connection(args) as connection:
        frame = connection.calibrate(args.lever, args.since, args.splits, apply=args.apply)
    told = _told(frame)
    common.say(_said(frame, told, args.lever, is_applied=args.apply))
    if args.format == "json":
        print(common.write(frame, "json", None), end="")
    elif len(told):
        print(common.write(_shown(told), "table", None), end="")
    return 0 if len(told) else 3


def _told(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("missing").cast(pl.String).is_null()) if len(frame) else pl.DataFrame(schema=SCHEMA)


def _said(frame: pl.DataFrame, told: pl.DataFrame, lever: str | None, *, is_applied: bool) -> list[str]:
    """What is missing of which lever, what was split how, and what to do with it."""
    if frame.is_empty():
        return [f"cannot tell: there are no cells of {lever or 'any lever'} with named replicas yet"]
    lacking = frame.filter(pl.col("missing").cast(pl.String).is_not_null())
    said = [f"{row['lever']}: cannot tell: {row['missing']}" for row in lacking.iter_rows(named=True)]
    for row in told.unique("lever", keep="first", maintain_order=True).iter_rows(named=True):
        what = f"{row['splits']} splits of up to {row['replicas']} {row['arm']} replicas in {row['segments']} segments"
        said.append(f"{row['lever']}: {what}, drawn anew each half hour; arms split by request on the same replicas need no more than this")
    if len(told) and told["phi"].null_count():
        said.append("where phi is empty no widening holds: those streams are uncalibrated, and longer blocks are to be taken")
    if len(told) and not is_applied:
        said.append("nothing was kept: --apply widens evidence so from the next block on")
    return said


def _shown(told: pl.DataFrame) -> pl.DataFrame:
    """For a terminal: false alarms a side and cycle in a column for each phi tried."""
    phis = told["phis"][0].to_list()
    rates = [pl.col("rates").list.get(place).round(3).alias(f"at {phi:g}") for place, phi in enumerate(phis)]
    return told.with_columns(rates).with_columns(pl.col("spread", "neighbors").round_sig_figs(3)).drop(UNSHOWN)
