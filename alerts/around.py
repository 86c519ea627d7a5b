"""What is known of streams beside their effects, as of a block's end: whether the lever is in use, what its quality gate says, and more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from alerts import revalidation, scores, usage
from alerts.chain import Policy
from alerts.effects import Effects
from alerts.quality import Reading
from alerts.standing import Seen, Standing
from alerts.streams import Key
from alerts.usage import Trail
from queries.store import Store

_Stay = tuple[str, str, datetime]
"""A lever, a segment, and since when the stream is in its state."""


class Around:
    """What one run of judging reads of its streams, from its first block's end to its last."""

    def __init__(self, store: Store, policies: Sequence[Policy], first: datetime, last: datetime) -> None:
        self._store, self._first, self._last = store, first, last
        self._scored = scores.read(store, policies, first, last)
        self._due = revalidation.due(store)
        self._trails: dict[_Stay, Trail] = {}

    def look_at(self, off: Iterable[tuple[Key, Standing]]) -> None:
        """Reads the traffic of streams that are not simply in use, of all that are new among them together."""
        wanted = {stay for key, standing in off if (stay := (key.lever, key.segment, standing.state_since)) not in self._trails}
        while wanted:
            since = {(lever, segment): moment for lever, segment, moment in sorted(wanted)}
            found = usage.read(self._store, since, self._first, self._last)
            self._trails |= {(*pair, moment): found[pair] for pair, moment in since.items()}
            wanted -= self._trails.keys()

    def quality(self, policy: Policy, segment: str, until: datetime) -> Reading:
        """What the policy's quality gate says of a segment's model at a block's end."""
        return self._scored.of_segment(policy, segment, until)

    def known(self, policy: Policy, segment: str, before: Standing, until: datetime, effects: Effects) -> tuple[Effects, Seen]:
        """The effects of a block with that of quality, and what else is known of the stream at its end."""
        quality = self.quality(policy, segment, until)
        seen = self.seen(Key(policy.name, policy.lever, segment), before, until, quality)
        return effects if quality.effect is None else {**effects, quality.effect.metric: quality.effect}, seen

    def has_traffic(self, key: Key, before: Standing, until: datetime) -> bool:
        """Whether a stream's segment had requests in the very block, with its lever or without."""
        trail = self._trail(key, before)
        return trail is not None and trail.has_block(until)

    def seen(self, key: Key, before: Standing, until: datetime, quality: Reading) -> Seen:
        """What is known of a stream at a block's end. What is to be judged again is known as of now, so of the last block alone."""
        again = self._due.get((key.lever, key.segment)) if until == self._last else None
        trail = self._trail(key, before)
        if trail is None:
            return Seen(quality=quality.said, quality_doubt=quality.is_doubted, again=again)
        used = trail.at(until)
        setting = used.set_since(before.state_since)
        return Seen(used.in_use, setting, used.said, quality.said, quality.is_doubted, again)

    def _trail(self, key: Key, before: Standing) -> Trail | None:
        if before.state == "on":
            return None
        stay = key.lever, key.segment, before.state_since
        if stay not in self._trails:
            self.look_at([(key, before)])
        return self._trails[stay]
