"""A lever accused by its error rate in, the one replica that makes most of the errors out: it may be that replica, not the lever."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from queries import files
from queries.store import Store

ERRORS = "error_rate"
MOST_ERRORS, FEW_REQUESTS, LEAST_ERRORS = 0.8, 0.5, 10
"""One replica stands out with so large a share of the errors from at most so large a share of the requests."""


def culprit(store: Store, lever: str, segment: str, since: datetime, until: datetime) -> str | None:
    """`96 % of the errors are of replica r3, which has 12 % of the requests`; None where no replica stands out."""
    asked = {"lever": lever, "segment": segment, "since": since, "until": until}
    return told(store.frame(files.question("error_replicas"), asked).rows())


def told(replicas: Sequence[tuple[str, float, float]]) -> str | None:
    """The same, of (replica, errors, requests), most errors first."""
    errors, requests = sum(row[1] for row in replicas), sum(row[2] for row in replicas)
    if len(replicas) < 2 or errors < LEAST_ERRORS:
        return None
    name, mine, served = replicas[0]
    if mine < MOST_ERRORS * errors or served > FEW_REQUESTS * requests:
        return None
    return f"{100 * mine / errors:.0f} % of the errors are of replica {name}, which has {100 * served / requests:.0f} % of the requests"
