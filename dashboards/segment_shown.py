"""What a URL chooses and where streams stand in, the segment and lever that the segment page shows out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from dashboards import standing
from dashboards.choice import FILTER_KEYS, LONG_S, Choice, of_lever, title
from dashboards.reader import Reader
from dashboards.standing import Stream
from pipeline.segments import JUDGING_KEYS, canonical, keys_for
from queries import files

ANY_LEVER = "speculation"  # whose arms are looked for where no policy has judged the segment


@dataclass(frozen=True)
class Shown:
    """The segment of a page: its keys ("" = unknown), the lever whose arms are told apart, its stream, and the others on this segment."""

    choice: Choice
    lever: str
    stream: Stream | None
    others: list[Stream]

    @property
    def title(self) -> str:
        """The segment in a line."""
        return title(self.choice.keys)

    @property
    def segment(self) -> str:
        """The segment as `effects` and `verdicts` name it."""
        return self.stream.segment if self.stream else canonical(of_lever(self.choice.keys, self.lever))

    @property
    def is_long(self) -> bool:
        """Whether hours are read in the place of blocks."""
        return (self.choice.until - self.choice.since).total_seconds() > LONG_S

    @property
    def asked(self) -> dict[str, Any]:
        """The parameters that questions about the segment's cells share."""
        keys = {key: self.choice.keys.get(key) for key in FILTER_KEYS}
        return {"lever": self.lever, "since": self.choice.since, "until": self.choice.until, **keys}

    def buckets(self, *, any_temperature: bool = False) -> dict[str, Any]:
        """The parameters of `page_buckets`."""
        asked = {**self.asked, "temperature_bucket": None} if any_temperature else self.asked
        return {**asked, "width_s": self.choice.width_s, "is_long": self.is_long}

    def effects(self, *metrics: str) -> dict[str, Any]:
        """The parameters of `page_effects`: as they are in a day, else the newest of each bucket."""
        step_s = 300 if self.choice.until - self.choice.since <= timedelta(days=1, minutes=5) else self.choice.width_s
        asked = {"lever": self.lever, "segment": self.segment, "since": self.choice.since, "until": self.choice.judged_until}
        return {**asked, "metrics": list(metrics), "step_s": step_s}


def shown(reader: Reader, chosen: Choice, now: datetime) -> Shown:
    """The stream that fits what is chosen, of several the most urgent; without any, the chosen keys themselves."""
    frame = standing.standing(reader, chosen.judged_until)
    first_of_all = standing.urgency().clip(0, 2)  # what is on hold comes no sooner than what pays, the most requests first
    many = pl.col("n_a").fill_null(0) + pl.col("n_b").fill_null(0)
    listed = frame.with_columns(first_of_all, many.alias("many")).sort(
        "urgency", "shadow", "many", "policy", descending=[False, False, True, False]
    )
    fitting = [row for row in listed.iter_rows(named=True) if _fits(row, chosen.keys)]
    here = [row for row in fitting if chosen.lever in (None, row["lever"])]
    exact = [row for row in here if row["segment"] == canonical(of_lever(chosen.keys, row["lever"]))] if chosen.keys else []
    first = next(iter(exact or here), None)
    if first is None:
        return Shown(chosen, chosen.lever or ANY_LEVER, None, _streams(fitting, now))
    stream = standing.stream(first, now)
    own = {key: stream.keys.get(key, "") for key in keys_for(stream.lever)}
    tenant = {"tenant": chosen.keys["tenant"]} if "tenant" in chosen.keys else {}
    beside = [row for row in frame.iter_rows(named=True) if row["segment"] != stream.segment or row["policy"] != stream.policy]
    same = [row for row in beside if _fits(row, {key: value for key, value in own.items() if key in JUDGING_KEYS})]
    return Shown(replace(chosen, keys={**own, **tenant}, lever=stream.lever), stream.lever, stream, [stream, *_streams(same, now)])


def history(reader: Reader, here: Shown) -> tuple[list[dict[str, Any]], dict[str, Any], bool]:
    """The segment's buckets, the parameters that gave them, and whether they are of any temperature.

    Requests without an arm are not kept apart by temperature.
    """
    asked = here.buckets()
    rows = reader.frame(files.question("page_buckets"), asked).to_dicts()
    if rows or not here.choice.keys.get("temperature_bucket"):
        return rows, asked, False
    asked = here.buckets(any_temperature=True)
    return reader.frame(files.question("page_buckets"), asked).to_dicts(), asked, True


def everything(reader: Reader, here: Shown, metrics: tuple[str, ...]) -> pl.DataFrame:
    """The report's row of all the segment's requests in the period, of any temperature; empty where there is none."""
    keys = {key: value for key, value in here.choice.keys.items() if key != "temperature_bucket"}
    return _reported(reader, here, keys, metrics, ())


def arms(reader: Reader, here: Shown, metrics: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The report's row of each arm of the lever."""
    rows = _reported(reader, here, here.choice.keys, metrics, (f"arm.{here.lever}",))
    return {row[f"arm.{here.lever}"]: row for row in rows.iter_rows(named=True) if row[f"arm.{here.lever}"] is not None}


def _reported(reader: Reader, here: Shown, keys: Mapping[str, str], metrics: tuple[str, ...], more: tuple[str, ...]) -> pl.DataFrame:
    by = (*keys, *more)
    frame = reader.report(by=by, metrics=metrics, since=here.choice.since, until=here.choice.until, source="cells")
    wanted = [pl.col(key).is_null() if value == "" else pl.col(key) == value for key, value in keys.items()]
    return frame.filter(*wanted) if wanted else frame


def _fits(row: Mapping[str, Any], keys: Mapping[str, str]) -> bool:
    """Whether a stream's segment lies in what is chosen; a key that its lever is not judged by says nothing against it."""
    told = standing.keys_of(row)
    return all((told.get(key) or "") == value for key, value in keys.items() if key in keys_for(row["lever"]))


def _streams(rows: list[dict[str, Any]], now: datetime) -> list[Stream]:
    return [standing.stream(row, now) for row in rows]
