"""Streams with blocks to be judged at one block's end after another in, what each policy says of each out: as a live run, no row written.

Streams begin with the first of their blocks. What happens at a block's end is `rounds.judged`, as in a live run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from alerts import rounds, turns
from alerts.chain import Policy
from alerts.dues import Dues
from alerts.effects import Effects
from alerts.judge import stale
from alerts.outcome import Outcome
from alerts.rounds import Due
from alerts.standing import NOTHING_SEEN, Judgment, Seen, Standing
from alerts.streams import Block, Key


class Played(NamedTuple):
    """What a policy said of a block, and where its stream stood before; without effects where the stream fell behind the others."""

    policy: Policy
    key: Key
    before: Standing
    judgment: Judgment
    decided_at: datetime
    effects: Effects | None


class Play:
    """Policies that judge history, from its first block's end to its last; `outcome` is where every stream stands by now."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._named = {policy.name: policy for policy in policies}
        self._interacts = turns.interacting(policies)
        self.by_lever: dict[str, list[Policy]] = {}
        for policy in policies:
            self.by_lever.setdefault(policy.lever, []).append(policy)
        self.outcome = Outcome({}, {}, self._named)

    def at(self, until: datetime, dues: Dues) -> Iterator[Played]:
        """What is said at a block's end of the streams that are due, and of those that have fallen behind."""
        outcome = self.outcome
        said = rounds.judged(dues.due, outcome.opened(until), self._interacts, until, quick=dues.quick)
        for key, one, judgment in zip(dues.keys, dues.due, said, strict=True):
            outcome.add(one.policy, key, judgment, until, until, one.effects)
            yield Played(one.policy, key, one.before, judgment, until, one.effects)
        yield from self._fallen_behind(until)
        for rows in (outcome.verdicts, outcome.current, outcome.flips, outcome.written):  # what a live run would write
            rows.clear()

    def dues(self, blocks: Iterable[Block], seen: Seen = NOTHING_SEEN) -> Dues:
        """Blocks that end together, as they are due, where the same is known of all of them."""
        found = Dues([], [], {})
        for block in blocks:
            for policy in self.by_lever.get(block.lever, ()):
                key = Key(policy.name, policy.lever, block.segment)
                before = self.outcome.before(key, block.until)
                if before is not None:
                    found.keys.append(key)
                    found.due.append(Due(policy, block.segment, before, block.effects, seen))
        return found

    def _fallen_behind(self, until: datetime) -> Iterator[Played]:
        """Streams whose traffic stopped for longer than their policy takes, while others go on."""
        for key, stream in list(self.outcome.known.items()):
            policy = self._named[key.policy]
            if stream.said[2] != "stale" and until - stream.block_ended_at > timedelta(seconds=policy.stale_after_s):
                judgment = stale(stream.standing, stream.block_ended_at, until)
                self.outcome.add(policy, key, judgment, until, stream.block_ended_at, {})
                yield Played(policy, key, stream.standing, judgment, until, None)
