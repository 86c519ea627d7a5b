"""The table `evaluations` in, what the quality gate of a policy says of a model at a moment out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from alerts import wording
from alerts.chain import Policy
from alerts.quality import ORIGINAL, Reading, Scores, Suite, compare, worst
from alerts.settings import InUse, in_use
from alerts.traffic import told
from queries import files
from queries.store import Store

LOOKS_BACK = 3.0  # times a gate's `max_age_days`: what is older is not told of as too old any more
_Place = tuple[str | None, str, str, float | None]


class Evaluated:
    """Scores of several levers, read once: what each gate says of each model as of any moment up to that of the reading."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], used: InUse) -> None:
        self._used = used
        self._suites = _suites(rows)
        self._models = {lever: {place[0] for place in places} for lever, places in self._suites.items()}
        self._held: dict[tuple[str, str | None, str | None], tuple[datetime, Reading]] = {}

    def models(self, lever: str) -> set[str | None]:
        """The models that a lever has scores of; None where they name none."""
        return self._models.get(lever, set())

    def of_segment(self, policy: Policy, segment: str, until: datetime) -> Reading:
        """What the policy's gate says of a segment's model; of scores that name no model where those that do say nothing."""
        model = told(segment).get("model")
        known = model if model in self.models(policy.lever) else None
        return self.reading(policy, known, until, named=model)

    def reading(self, policy: Policy, model: str | None, until: datetime, named: str | None = None) -> Reading:
        """What the policy's gate says of a model's settings in use; of all its settings where none is known to be in use."""
        key = (policy.name, model, named or model)
        held = self._held.get(key)
        if held is None or held[0] != until:
            held = self._held[key] = until, self._read(policy, model, until, named or model)
        return held[1]

    def _read(self, policy: Policy, model: str | None, until: datetime, named: str | None) -> Reading:
        gate = policy.quality_gate
        suites = [suite for place, suite in self._suites.get(policy.lever, {}).items() if place[0] == model and suite.is_of(gate)]
        used = self._used.settings(policy.lever, named, until)
        oldest = until - timedelta(days=LOOKS_BACK * gate.max_age_days)
        scored = [(suite, setting) for suite in suites for setting, made in _newest(suite, until).items() if made > oldest]
        wanted = [(suite, setting) for suite, setting in scored if not used or setting in used]
        if wanted:
            return worst([compare(suite, setting, gate, until) for suite, setting in wanted])
        of = f" of {named}" if named else ""
        if scored:
            others = ", ".join(sorted({setting for _, setting in scored}))
            said = f"quality not measured: {of.strip() or 'what'} is scored with {others}, in use is {', '.join(sorted(used))}"
        else:
            said = f"quality not measured: no score of {wording.plain(policy.lever)}{of} in the suite {gate.suite} yet"
        return Reading("not_measured", said)


def read(store: Store, policies: Sequence[Policy], since: datetime, until: datetime) -> Evaluated:
    """The scores that the gates of policies look at in blocks that end from one moment of event time to another."""
    days = LOOKS_BACK * max((policy.quality_gate.max_age_days for policy in policies), default=0.0)
    asked = {"since": since - timedelta(days=days), "until": until, "levers": sorted({policy.lever for policy in policies})}
    return Evaluated(store.frame(files.question("quality_scores"), asked).rows(named=True), in_use(store))


def readings(store: Store, policy: Policy, until: datetime) -> dict[str | None, Reading]:
    """What a policy's gate says of each model that has scores."""
    evaluated = read(store, [policy], until, until)
    return {model: evaluated.reading(policy, model, until) for model in evaluated.models(policy.lever)}


def _suites(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[_Place, Suite]]:
    """The suites of each lever; an original that names no lever counts in each of them."""
    found: dict[str, dict[_Place, Suite]] = {}
    for row in rows:
        if row["lever"] is not None:
            found.setdefault(row["lever"], {}).setdefault(_place(row), Suite(row["suite"], row["kind"], row["better"]))
    for row in rows:
        for lever in found if row["lever"] is None else (row["lever"],):
            suite = found[lever].get(_place(row))
            if suite is not None:
                _scores(suite, row["setting"]).add(row["evaluated_at"], row["score"], row["run_id"])
    return found


def _newest(suite: Suite, until: datetime) -> dict[str, datetime]:
    """When each setting was last scored by a moment."""
    made = {setting: scores.newest(until, 1)[1] for setting, scores in suite.settings.items()}
    return {setting: moment for setting, moment in made.items() if moment is not None}


def _place(row: Mapping[str, Any]) -> _Place:
    return row["model"], row["suite"], row["kind"], row["temperature"]


def _scores(suite: Suite, setting: str) -> Scores:
    return suite.original if setting == ORIGINAL else suite.settings.setdefault(setting, Scores())
