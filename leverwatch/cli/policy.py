"""`leverwatch policy VERB`: which policies there are, whether a file can be used, and what it would have said, before it is trusted."""

from __future__ import annotations

import argparse
import importlib

MODULES = ("policy_list", "policy_metrics", "policy_check", "policy_test", "policy_diff", "policy_backtest", "policy_due")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command `policy` with its verbs; each of them sets what is run."""
    told = "which policies there are, whether a file can be used, and what it would have said, before it is trusted"
    parser = subparsers.add_parser("policy", help=told)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name in MODULES:
        importlib.import_module(f"leverwatch.cli.{name}").add(verbs)
