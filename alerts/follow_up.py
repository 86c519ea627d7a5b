"""What is followed around judging: closed blocks in; settings in use, what is to be judged again, and checks of switches out, in tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from alerts import after_check, revalidation, settings
from alerts.chain import Policy
from queries.store import Store


def before_judging(store: Store, policies: Sequence[Policy]) -> int:
    """Notes which settings are in use up to the newest closed block, and which levers are to be judged again; gives how much it did."""
    done = 0
    while True:
        changes, until = settings.read_next(store)
        if until is None:
            return done
        done += 1 + revalidation.list_changes(store, policies, changes)


def after_judging(store: Store, policies: Sequence[Policy]) -> int:
    """Closes what was judged again, and checks the switches whose hour is over, as of the newest judged block; gives rows written."""
    until: datetime | None = store.rows("select max(block_ended_at) as until from current_verdicts")[0]["until"]
    if until is None:
        return 0
    return revalidation.close_judged(store, until) + after_check.follow(store, policies, until)
