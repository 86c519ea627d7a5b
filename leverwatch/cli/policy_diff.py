"""`leverwatch policy diff OLD NEW`: what changed between two policies, and what would have been judged otherwise."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import msgspec

from alerts.backtest_diff import otherwise, verdict_blocks
from alerts.backtest_told import Backtest, Recommendation
from alerts.chain import Policy
from alerts.policy_diff import Difference, differences
from leverwatch.backtesting import parsed, texts
from leverwatch.cli import common
from leverwatch.cli.policy_backtest_text import moment


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verb `diff`."""
    told = "what changed between two policies, key by key, and what of it loosens or tightens; status 1 where they differ"
    parser = verbs.add_parser("diff", help=told, description=f"{told}. With --since, --data or --url also what would be judged otherwise.")
    parser.add_argument("old", metavar="OLD", help="a policy's TOML file, or the name of a shipped policy")
    parser.add_argument("new", metavar="NEW", help="as OLD")
    common.add_data(parser)
    parser.add_argument("--since", metavar="T", help="judge history by both from there on: ISO 8601, or an age such as 7d")
    parser.add_argument("--until", metavar="T", help="as --since (default: the newest effect)")
    common.add_format(parser, "table", "json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what differs; gives 1 where anything does, else 0."""
    old, new = (parsed(texts(name))[0] for name in (args.old, args.new))
    found = differences(old, new)
    tried = _tried(args) if args.since or args.until or args.data or args.url else None
    if args.format == "json":
        print(
            json.dumps({"differences": [one._asdict() for one in found], **(_rows(*tried) if tried else {})}, indent=2, ensure_ascii=False)
        )
    else:
        print("\n".join([*_text(old, new, found), *(_judged(*tried) if tried else ())]))
    return 1 if found else 0


def _tried(args: argparse.Namespace) -> tuple[Backtest, Backtest]:
    with common.connection(args) as connection:
        return connection.backtest(args.old, args.since, args.until), connection.backtest(args.new, args.since, args.until)


def _text(old: Policy, new: Policy, found: list[Difference]) -> Iterator[str]:
    yield f"{old.name} version {old.version} -> {new.name} version {new.version}"
    yield from (one.text() for one in found)
    if not found:
        yield "nothing differs"
        return
    counts = {sense: sum(one.sense == sense for one in found) for sense in ("loosens", "tightens", "changes", "words")}
    yield ", ".join(f"{number} {sense}" for sense, number in counts.items() if number)


def _judged(old: Backtest, new: Backtest) -> Iterator[str]:
    if not (old.streams or new.streams):
        yield "there is no history to judge in this period"
        return
    rows = otherwise(old, new)
    for row in rows:
        yield f"{row.lever} {row.segment}: {_period(row.old)} -> {_period(row.new)}"
    for lever, segment, before, after in verdict_blocks(old, new):
        told = ", ".join(f"{name} {before.get(name, 0)} -> {after.get(name, 0)}" for name in sorted({*before, *after}))
        yield f"{lever} {segment}: blocks {told}"
    yield f"recommendations: {len(old.recommendations)} -> {len(new.recommendations)}, otherwise: {len(rows)}"
    yield from (f"note: {note}" for note in dict.fromkeys((*old.notes, *new.notes)))


def _period(one: Recommendation | None) -> str:
    """`disable 2026-03-04T00:20Z to 2026-03-04T01:20Z`."""
    if one is None:
        return "nothing"
    return f"{one.action} {moment(one.fired_at)} to {moment(one.ended_at) if one.ended_at else 'now'}"


def _rows(old: Backtest, new: Backtest) -> dict[str, object]:
    return {
        "otherwise": [
            {"lever": one.lever, "segment": one.segment, "old": _row(one.old), "new": _row(one.new)} for one in otherwise(old, new)
        ],
        "blocks": [dict(zip(("lever", "segment", "old", "new"), row, strict=True)) for row in verdict_blocks(old, new)],
    }


def _row(one: Recommendation | None) -> object:
    return None if one is None else msgspec.to_builtins(one)
