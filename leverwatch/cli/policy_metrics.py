"""`leverwatch policy metrics`: the metrics that a policy may name, with what a threshold on each may be."""

from __future__ import annotations

import argparse

import polars as pl

from alerts.bounds import metric_range
from alerts.carried import CARRIED, COMPARED, WITH_EVIDENCE
from alerts.effects import effect_name
from leverwatch.cli import common
from pipeline.metrics import Metric, judged


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verb `metrics`."""
    told = "the metrics that a policy may name: unit, better direction, what a threshold may be, and what it is held against"
    parser = verbs.add_parser("metrics", help=told)
    common.add_format(parser, "table", "json", "csv")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints a row a metric; gives 0."""
    rows = [_row(metric) for name, metric in sorted(judged().items()) if effect_name(name) in CARRIED]
    print(common.write(pl.DataFrame(rows), args.format, None), end="")
    return 0


def _row(metric: Metric) -> dict[str, object]:
    low, high = metric_range(metric)
    held = _held(effect_name(metric.name))
    return {"metric": metric.name, "unit": metric.unit, "better": metric.better, "from": low, "to": high, "held_against": held}


def _held(effect: str) -> str:
    """What a condition on it is decided by."""
    if effect in WITH_EVIDENCE:
        return "control, by evidence"
    return "control, by its interval" if effect in COMPARED else "threshold"
