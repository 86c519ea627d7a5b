"""A request to the lever page in, everything that is read of the lever for it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import polars as pl

from dashboards import lever_chain, lever_rows, standing, theme
from dashboards.arriving import newest
from dashboards.choice import Choice, choice, of_lever
from dashboards.lever_chain import Chain
from dashboards.lever_rows import Row
from dashboards.page import Asked
from pipeline.metrics import Metric, judged
from pipeline.segments import LEVERS, canonical, keys_for
from queries import files
from queries.report import ReportError

NET_ITL = "net_itl_s"
NO_TOTAL = "no request of a treated arm is in this period, or this metric does not add up"


@dataclass(frozen=True)
class Lever:
    """A lever: what the URL chooses, its policies, its newest effects and where it stops paying, its segments with the worst first."""

    asked: Asked
    chosen: Choice
    name: str
    metric: Metric
    chains: list[Chain]
    effects: pl.DataFrame
    break_even: list[dict[str, Any]]
    rows: list[Row]

    @property
    def shown(self) -> Row | None:
        """The segment whose break-even and budget are shown: the chosen one, else the worst."""
        wanted = canonical(of_lever(self.chosen.keys, self.name))
        return next((row for row in self.rows if row.segment == wanted), self.rows[0] if self.rows else None)

    @property
    def period(self) -> tuple[datetime | None, datetime | None]:
        """The period where the URL says one; else what each answer takes by itself."""
        is_said = bool(self.asked.query.get("since") or self.asked.query.get("until"))
        return (self.chosen.since, self.chosen.until) if is_said else (None, None)

    def total(self) -> tuple[Mapping[str, Any] | None, str]:
        """The standardized effect on the metric over what is chosen; or None, and why."""
        by = tuple(key for key in keys_for(self.name) if self.chosen.keys.get(key))
        try:
            found = self.asked.reader.effects(self.name, by, *self.period, total=not by)
        except ReportError as error:  # a period of more blocks than are added up at once
            return None, str(error)
        wanted = (canonical({key: self.chosen.keys[key] for key in by}), self.metric.name, "treated")
        fits = [row for row in found.iter_rows(named=True) if (row["segment"], row["metric"], row["arm_a"]) == wanted]
        return (fits[0], "") if fits and "pooled_gain" in fits[0] else (None, NO_TOTAL)


def read(asked: Asked) -> Lever:
    """Reads what the page needs. Raises ValueError for a choice that is none."""
    reader, now = asked.reader, asked.now
    chosen = choice(asked.query, newest(reader, now))
    name = chosen.lever or _worst(standing.standing(reader, chosen.until))
    chosen = replace(chosen, lever=name)
    policies = reader.frame(files.question("page_lever_policies"), {"lever": name})
    chains = [lever_chain.chain(row, theme.clock(row["loaded_at"], now)) for row in policies.iter_rows(named=True)]
    effects = reader.effects(name)
    wanted = chosen.metric or _benefit(chains, effects)
    metric = judged()[NET_ITL if wanted == "net_itl_gain" else wanted]
    margin = next((one.margin for one in chains if not one.is_shadow), None) if metric.name == NET_ITL else None
    rows = lever_rows.rows(effects, standing.standing(reader, chosen.until, name), metric.name, chosen, now, margin)
    return Lever(asked, chosen, name, metric, chains, effects, reader.break_even(name).to_dicts(), rows)


def _worst(streams: pl.DataFrame) -> str:
    """The lever to look at first where the URL names none."""
    ranked = streams.with_columns(standing.urgency()).sort("urgency", "gain", "lever", nulls_last=True)
    return str(ranked["lever"][0]) if len(ranked) else LEVERS[0]


def _benefit(chains: Sequence[Chain], effects: pl.DataFrame) -> str:
    """What the lever's policy expects; without any, what most segments have an effect on."""
    told = next((one.benefit for one in chains if not one.is_shadow), None)
    counted = Counter(effects["metric"].to_list()) if len(effects) else Counter()
    return told or (NET_ITL if NET_ITL in counted or not counted else counted.most_common(1)[0][0])
