"""`leverwatch policy test FILE...`: whether policies say what the cases beside them expect."""

from __future__ import annotations

import argparse

from alerts.policy_cases import failures
from leverwatch.policy_casing import cased


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verb `test`."""
    told = "whether policies say what the cases beside them (x.cases.toml for x.toml) expect; status 1 when one does not hold"
    parser = verbs.add_parser("test", help=told)
    parser.add_argument("files", metavar="FILE", nargs="+", help="a policy's TOML file, its file of cases, or the name of a shipped policy")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints each case and what of it does not hold; gives 1 when one does not, else 0."""
    counts = [0, 0]
    for policy, cases in [cased(named) for named in args.files]:
        for case in cases.cases:
            failed = failures(policy, case, cases.usual)
            counts[bool(failed)] += 1
            print(f"{policy.name}: {case.name}: {'does not hold' if failed else 'holds'}")
            for one in failed:
                print(f"  {one.text()}")
    print(f"{counts[0]} of {sum(counts)} cases hold")
    return 1 if counts[1] else 0
