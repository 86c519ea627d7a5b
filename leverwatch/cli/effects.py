"""`leverwatch effects`: a lever's newest effect in each segment, or where it stops paying."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import polars as pl

from alerts.levers import unknown
from leverwatch.cli import common, effects_table
from leverwatch.connection import names
from leverwatch.lever_questions import GAIN_ON
from pipeline.metrics import judged
from queries.report import ReportError

# The same in every row, in columns of its own, or lists.
UNSHOWN = (
    "lever",
    "segment",
    "method",
    "evidence_below",
    "evidence_above",
    "premise_evidence",
    "strata_keys",
    "strata_segments",
    "strata_gains",
    "blocks_by_load",
)
UNSHOWN_BANDS = ("lever", "segment", "buckets", "blocks", "gains", "gains_low", "gains_high", "signs", "line_point")


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "a lever's newest effect per segment and metric, treated against control, with its interval"
    parser = subparsers.add_parser("effects", help=told)
    common.add_data(parser)
    parser.add_argument("--lever", required=True, metavar="L", help="such as speculation")
    told = "a row per group of these keys, such as model: standardized over the judging segments beneath, beside what pooled sums show"
    parser.add_argument("--by", default="", metavar="KEY,...", help=told)
    parser.add_argument("--total", action="store_true", help="one row per metric of all the lever's traffic, standardized likewise")
    common.add_period(parser, "24 blocks before --until", "the end of the newest block")
    told = "only these metrics, such as net_itl_s,ttft_s_p95 (default: every one that has effects)"
    parser.add_argument("--metrics", default="", metavar="NAME,...", help=told)
    parser.add_argument("--wide", action="store_true", help="every column in the table; files and JSON always have them")
    told = "instead, up to which batch or length the lever pays, and from which it loses, or that it is not resolved yet"
    parser.add_argument("--break-even", action="store_true", help=told)
    told = "instead, per segment whether the lever may be advised for more of its traffic, and what is missing, in numbers"
    parser.add_argument("--widening", action="store_true", help=told)
    told = f"with --widening: the gain, as a ratio, that is asked for (default: {GAIN_ON:g})"
    parser.add_argument("--gain-on", type=float, metavar="RATIO", help=told)
    common.add_format(parser, "table", "json", "csv", "parquet")
    common.add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the effects, or the break-evens; 3 where there are none yet."""
    _refuse_together(args)
    keys = names(args.by) or ()
    with common.connection(args) as connection:
        if args.break_even:
            frame = connection.break_even(args.lever, keys)
        elif args.widening:
            frame = connection.widening(args.lever, GAIN_ON if args.gain_on is None else args.gain_on)
        else:
            frame = of_metrics(connection.effects(args.lever, keys, args.since, args.until, total=args.total), names(args.metrics) or ())
    if frame.is_empty():
        having = (f" in a segment with {args.by}" if args.by else "") + (f" on {args.metrics}" if args.metrics else "")
        what, of = ("break-even", "a bucket of a segment") if args.break_even else ("effect", "a segment")
        print(f"leverwatch: there is no {what} of {args.lever}{having} yet: it takes blocks with both arms in {of}", file=sys.stderr)
    common.say(misleading(frame))
    text = _table(args, frame) if args.format == "table" else common.write(frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0 if len(frame) else 3


def _table(args: argparse.Namespace, frame: pl.DataFrame) -> str | None:
    if args.wide or args.break_even or args.widening:
        return common.write(shown(frame, UNSHOWN_BANDS if args.break_even else UNSHOWN), "table", args.out)
    return common.put(effects_table.text(frame), args.out)


def of_metrics(frame: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """The effects on these metrics, all of them where none is named. Raises ReportError for a metric that there is not."""
    known = {*frame["metric"].to_list(), *judged()}
    for name in metrics:
        if name not in known:
            raise ReportError(unknown("metric", name, known))
    return frame.filter(pl.col("metric").is_in(metrics)) if metrics else frame


def _refuse_together(args: argparse.Namespace) -> None:
    """Raises ReportError where an option would be left out in silence."""
    instead = "--break-even" if args.break_even else "--widening" if args.widening else ""
    options = {"--widening": args.widening and args.break_even, "--by": args.by and args.widening, "--total": args.total}
    options |= {"--since": args.since, "--until": args.until, "--metrics": args.metrics, "--wide": args.wide}
    for option, is_asked in options.items():
        if instead and is_asked:
            msg = f"{option} is not taken with {instead}"
            raise ReportError(msg)
    if args.gain_on is not None and not args.widening:
        msg = "--gain-on is taken with --widening only"
        raise ReportError(msg)


def misleading(frame: pl.DataFrame) -> list[str]:
    """A sentence for each effect whose pooled number does not show what its strata do."""
    if "is_misleading" not in frame.columns:
        return []
    return [f"{row['segment']} {row['metric']}: {row['note']}" for row in frame.filter(pl.col("is_misleading")).iter_rows(named=True)]


def shown(frame: pl.DataFrame, unshown: Sequence[str] = UNSHOWN) -> pl.DataFrame:
    """Rows for a terminal: a column for each key of a segment, four digits, and no column that says nothing."""
    return effects_table.wide(frame, unshown)
