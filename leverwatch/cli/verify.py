"""`leverwatch verify NOTICE.json`: whether the sums behind a notice still hold."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from alerts import wording
from leverwatch.checked_notice import Notice, notice
from leverwatch.cli import common
from leverwatch.verifying import Verified, verify
from pipeline.metrics import judged
from pipeline.segments import canonical
from queries.printable import printable

STATUS = {"holds": 0, "changed": 1, "unknown": 3}
SAID = {"holds": "holds", "changed": "changed", "unknown": "cannot be checked"}


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "run the sums behind a notice again: whether it holds (0), changed (1), or cannot be checked (3)"
    parser = subparsers.add_parser("verify", help=told, description=f"{told}. Its SQL runs as any ad-hoc SQL does.")
    parser.add_argument("file", metavar="NOTICE.json", help="a webhook's body, its data, or a flip of /api/flips; - is standard input")
    common.add_data(parser)
    common.add_format(parser, "table", "json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints whether the notice holds and what its sums give; gives 0, 1 or 3."""
    text = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    asked = notice(text, args.file)
    with common.connection(args) as connection:
        found = verify(asked, connection)
    if args.format == "json":
        print(json.dumps(_row(found), indent=2, ensure_ascii=False))
    else:
        print(printable("\n".join(_text(asked, found))))
    return STATUS[found.outcome]


def _text(asked: Notice, found: Verified) -> list[str]:
    when = f" of {wording.utc(asked.decided_at)}" if asked.decided_at else ""
    lines = [f"{SAID[found.outcome]}: {asked.policy} on {canonical(dict(asked.segment))}{when}"]
    lines += [f"  {reason}" for reason in found.reasons]
    if asked.reason:
        lines.append(f"  it said: {asked.reason}")
    if found.now and found.metric:
        unit, now = judged()[found.metric].unit, found.now
        values = [wording.value(value, unit) if value is not None else "nothing" for value in (now.treated, now.control)]
        gain = f", gain {wording.percent(now.gain)} %" if now.gain is not None else ""
        counts = f"{now.n_treated} and {now.n_control} requests"
        lines.append(f"  its sums give: {wording.label(found.metric)} {values[0]} against {values[1]} in control{gain}, {counts}")
    return lines


def _row(found: Verified) -> dict[str, Any]:
    now = found.now._asdict() if found.now else None
    return {"outcome": found.outcome, "reasons": found.reasons, "metric": found.metric, "now": now}
