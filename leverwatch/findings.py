"""Frames of what a store holds in, findings per replica and dialect out: what is known of its requests, and what keeps a metric away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec
import polars as pl

from collectors.dialects import deployment, shipped
from leverwatch.diagnosis import Column, Core, Replica, Sampled
from leverwatch.marks_seen import OddMarks, odd_marks
from leverwatch.remedies import COLUMNS, GROUPS, TAP, Heard, of_several, remedy, says, sends
from pipeline import replica_load
from pipeline.metrics import Metric, by_name
from queries.metric_sql import columns_of

CORE = ("skipped_token_ratio", "cache_hit_rate", "draft_acceptance", "net_itl_s", "interconnect_efficiency")
METRICS: tuple[Metric, ...] = tuple(by_name()[name] for name in CORE)
# A metric of what a fleet may not do at all: the sign in its requests, and the signals of samples, that it does it; else why not.
ONLY_WHERE: dict[str, tuple[str, tuple[str, ...], str]] = {
    "draft_acceptance": ("speculates", ("draft_tokens_total",), "no speculation seen: no lever, no draft, no counter of drafts"),
    "interconnect_efficiency": ("moves", ("kv_transfer_s", "kv_transfer_bytes"), "no KV transfer seen"),
}
CONTROL_ALONE = "all its requests are of the control arm, which drafts nothing"
SETTLING = "a server does 2 minutes of event time after they began, or once it saw no newer span for 3 minutes"
NO_ODD = OddMarks()
Row = Mapping[str, Any]


def replicas(seen: Mapping[str, pl.DataFrame], now: datetime) -> list[Replica]:
    """Every replica and dialect: those with requests, then those whose spans are parts of others', then those that fell silent.

    What no engine served is counted beside the requests of its replica, and stands by itself where there are none.

    `seen` has the frames `coverage`, `marks`, `spans`, `samples`, `late_samples`, `sampling` and `last_seen`, as the questions of these
    names give them.
    """
    unserved = {row["replica"]: row for row in seen["coverage"].filter("is_unserved").to_dicts()}
    seen = {**seen, "coverage": seen["coverage"].filter(~pl.col("is_unserved"))}
    nameless = {row["engine"] for row in seen["coverage"].filter(pl.col("replica").is_null()).to_dicts()}
    spoke = {(row["replica"], row["dialect"]): row for row in _speakers(seen["spans"], nameless).to_dicts()}
    sampled = {row["replica"]: msgspec.convert(row, Sampled) for row in seen["sampling"].to_dicts()}
    odd, hears = odd_marks(seen["marks"].to_dicts(), deployment()), _Ears(seen)
    pools = {name for names in seen["coverage"]["prefilled_by"].drop_nulls().to_list() for name in names}
    served = [row for row in seen["coverage"].sort("replica", "engine").to_dicts() if not _only_prefills(row, pools)]
    marked = [row | {"odd": odd.get(_key(row), NO_ODD)} for row in served]
    found = [_serving(row, spoke.pop(_key(row), {}), hears, sampled, now) for row in marked]
    found = [_with_unserved(one, unserved.pop(one.replica, None), now) for one in found]
    found += [_beside(row, now) for key, row in sorted(spoke.items(), key=lambda item: tuple(map(str, item[0]))) if key[1] is not None]
    found += [_unserved(row, now) for row in unserved.values()]
    known = {(one.replica, one.dialect) for one in found}
    found += [_sampled_alone(row, now) for row in _strangers(seen["samples"], {name for name, _ in known}).to_dicts()]
    quiet = (row for row in seen["last_seen"].sort("replica", "engine").to_dicts() if _key(row) not in known)
    return [*found, *(_silent(row, now) for row in quiet)]


def status(found: Sequence[Replica]) -> int:
    """0: every core metric can be computed of every replica with requests, where it applies; 1: one cannot; 3: there are no requests."""
    serving = [one for one in found if one.stands == "requests"]
    if not serving:
        return 3
    return int(any(core.state == "missing" for one in serving for core in one.core))


def columns(row: Row, heard: Heard) -> tuple[Column, ...]:
    """The columns that matter, of the requests that a row of `coverage` counts."""
    return tuple(_column(name, group, row, heard) for group, names in GROUPS.items() for name in names)


def core(row: Row, why: Mapping[str, str], heard: Heard) -> tuple[Core, ...]:
    """The core metrics of the requests that a row of `coverage` counts; `why` says of each column what brings it."""
    return tuple(_core(metric, row, why, heard) for metric in METRICS)


def _only_prefills(row: Row, pools: set[str]) -> bool:
    """Whether all its requests are pairs of which the decode leg has not come yet, or never will: a prefill pool's replica."""
    return bool(row["halves"] == row["requests"]) and row["replica"] in pools


def _serving(row: Row, spoke: Row, hears: _Ears, sampled: Mapping[str, Sampled], now: datetime) -> Replica:
    heard = hears.of(row)
    of_columns = columns(row, heard)
    last = max(row["last_seen_at"], spoke.get("last_seen_at", row["last_seen_at"]))
    return Replica(
        replica=row["replica"],
        dialect=row["engine"],
        version=row["version"],
        stands="requests",
        roles=tuple(spoke.get("roles", ())),
        requests=row["requests"],
        spans=spoke.get("spans", 0),
        last_seen_at=last,
        last_seen_age_s=_age_s(last, now),
        core=core(row, {one.column: one.why for one in of_columns}, heard),
        columns=of_columns,
        sampled=_explained(sampled.get(row["replica"]), row["engine"]),
    )


def _with_unserved(one: Replica, unserved: Row | None, now: datetime) -> Replica:
    if unserved is None:
        return one
    last = max(one.last_seen_at, unserved["last_seen_at"])
    count = unserved["requests"]
    return msgspec.structs.replace(one, unserved=count, last_seen_at=last, last_seen_age_s=_age_s(last, now))


def _unserved(row: Row, now: datetime) -> Replica:
    last = row["last_seen_at"]
    return Replica(row["replica"], None, None, "unserved", (), 0, 0, last, _age_s(last, now), unserved=row["requests"])


def _explained(sampled: Sampled | None, engine: str | None) -> Sampled | None:
    if sampled is None or sampled.state == "whole":
        return sampled
    return msgspec.structs.replace(sampled, why=sends(engine or ""))


def _column(name: str, group: str, row: Row, heard: Heard) -> Column:
    odd: OddMarks = row["odd"]
    held, requests = row[f"{name}_n"] - odd.requests.get(name, 0), _asked(name, row)
    if held == requests > 0:
        return Column(name, group, "complete", 1.0, _unasked((name,), name, row))
    why = odd.why(name) or _waiting(name, held, row, heard) or remedy(name, row["engine"] or "", heard, some=held > 0)
    return Column(name, group, "partial" if held else "missing", held / max(requests, 1), why)


def _waiting(name: str, held: int, row: Row, heard: Heard) -> str:
    """Why a column that settling fills is not there yet: of requests that wait for it, then of the others. Empty where none wait for it."""
    waits: int = row["unsettled"]
    settled = row["requests"] - waits
    is_told = held > 0 or replica_load.SOURCES.get(name) == "derived" or says(name, heard)
    if name not in replica_load.SOURCES or not waits or not is_told:
        return ""
    told = f"{waits:,} of {row['requests']:,} requests are not settled yet, which {SETTLING}"
    if held >= settled:
        return told
    return f"{told}; of the others: {remedy(name, row['engine'] or '', heard, some=True)}"


def _core(metric: Metric, row: Row, why: Mapping[str, str], heard: Heard) -> Core:
    known, counting, asked = row[f"known:{metric.name}"], row[f"counts:{metric.name}"], _asked(metric.name, row)
    coverage, lacks = known / max(asked, 1), _lacks(metric, row)
    told = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in _by_reason(lacks, why).items())
    unasked = _unasked(columns_of(metric), metric.name, row)
    if counting:
        return Core(metric.name, "computed", counting, coverage, lacks, told, unasked)
    if not asked:
        return Core(metric.name, "not_applicable", 0, coverage, (), unasked or CONTROL_ALONE)
    sign, signals, absent = ONLY_WHERE.get(metric.name, ("", (), ""))
    if sign and not row[sign] and heard.active.isdisjoint(signals):
        return Core(metric.name, "not_applicable", 0, coverage, (), "; but ".join(filter(None, (absent, row["odd"].why("levers")))))
    if known and (not sign or known == asked):
        return Core(metric.name, "not_applicable", 0, coverage, (), f"no request with {metric.known_when}")
    return Core(metric.name, "missing", 0, coverage, lacks, told or f"no request with {metric.known_when}")


def _unasked(columns: Sequence[str], name: str, row: Row) -> str:
    """Of how many requests for several answers a column or metric is not asked, and why; empty where there are none."""
    several: int = row.get(f"several:{name}", 0)
    if not several:
        return ""
    return f"not asked of {several:,} with several answers: {of_several(columns, row['engine'] or '')}"


def _lacks(metric: Metric, row: Row) -> tuple[str, ...]:
    """The inputs that stand between a metric and the requests that do not count for it: those that no request has, else that some lack."""
    lacking = [name for name in sorted(columns_of(metric), key=COLUMNS.index) if row[f"{name}_n"] < _asked(name, row)]
    return tuple([name for name in lacking if not row[f"{name}_n"]] or lacking)


def _asked(name: str, row: Row) -> int:
    """How many requests are asked for a column or metric: drafts are not asked of the control arm."""
    asked: int = row.get(f"asked:{name}", row["requests"])
    return asked


def _by_reason(columns: Sequence[str], why: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for column in columns:
        found.setdefault(why[column], []).append(column)
    return found


def _speakers(spans: pl.DataFrame, nameless: set[str | None]) -> pl.DataFrame:
    """One row per replica and dialect that spoke. Where requests stand on clients or gateways alone, nobody knows which replica served."""
    asked = pl.col("role").is_in(["client", "gateway", "body", "log"]) & pl.col("dialect").is_in([name for name in nameless if name])
    spans = spans.with_columns(pl.when(asked).then(None).otherwise(pl.col("replica")).alias("replica"))
    return spans.group_by("replica", "dialect").agg(
        pl.col("role").drop_nulls().unique().sort().alias("roles"), pl.col("spans").sum(), pl.col("last_seen_at").max()
    )


def _beside(row: Row, now: datetime) -> Replica:
    """A sender that no request stands for: a gateway, a client, the tap, the prefill leg of a pair, or an engine that only started."""
    stands: Literal["parts", "housekeeping"] = "housekeeping" if set(row["roles"]) <= {"housekeeping"} else "parts"
    last = row["last_seen_at"]
    return Replica(row["replica"], row["dialect"], None, stands, tuple(row["roles"]), 0, row["spans"], last, _age_s(last, now))


def _strangers(samples: pl.DataFrame, named: set[str | None]) -> pl.DataFrame:
    """The replicas of engines that samples name, and no span or request does."""
    engines = [dialect.dialect for dialect in shipped()]
    strange = pl.col("engine").is_in(engines) & ~pl.col("replica").is_in([name for name in named if name])
    of_each = samples.filter(strange).group_by("replica", "engine").agg(pl.col("last_seen_at").max())
    return of_each.sort("replica", "engine")


def _sampled_alone(row: Row, now: datetime) -> Replica:
    last = row["last_seen_at"]
    return Replica(row["replica"], row["engine"], None, "samples", (), 0, 0, last, _age_s(last, now))


def _silent(row: Row, now: datetime) -> Replica:
    last = row["last_seen_at"]
    return Replica(row["replica"], row["engine"], None, "silent", (), 0, 0, last, _age_s(last, now))


class _Ears:
    """What is heard of each replica beside its requests."""

    def __init__(self, seen: Mapping[str, pl.DataFrame]) -> None:
        of_tap = seen["spans"].filter((pl.col("dialect") == TAP) & pl.col("replica").is_not_null())
        self._tapped = set(of_tap["replica"].to_list())
        self._samples = seen["samples"].sort("name").to_dicts()
        self._serving = set(seen["coverage"]["replica"].to_list())
        self._late: dict[str, set[str]] = {}
        for row in seen["late_samples"].to_dicts():
            self._late.setdefault(row["replica"], set()).add(row["column"])

    def of(self, row: Row) -> Heard:
        """What is heard of the replica of a row of `coverage`.

        Samples of its engine under a name that serves nothing, such as host and port of a scrape, may be its own: they count.
        """
        mine = [
            sample
            for sample in self._samples
            if sample["replica"] == row["replica"] or (sample["engine"] == row["engine"] and sample["replica"] not in self._serving)
        ]
        names = tuple({sample["signal"]: sample["name"] for sample in mine}.items())
        active = frozenset(sample["signal"] for sample in mine if (sample["most"] or 0) > 0)
        is_tapped = bool(row["has_body"]) or row["replica"] in self._tapped
        is_half = row["halves"] == row["requests"]
        late = frozenset(self._late.get(row["replica"], ()))
        return Heard(is_tapped, names, active, is_named=row["replica"] is not None, is_half=is_half, late=late)


def _key(row: Row) -> tuple[str | None, str | None]:
    return row["replica"], row["engine"]


def _age_s(moment: datetime, now: datetime) -> float:
    return round((now - moment).total_seconds(), 3)
