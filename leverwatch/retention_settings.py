"""`[retention]` of the configuration in, the rules of `queries.retention` out."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

import msgspec

from leverwatch.described import says
from queries.retention import REQUESTS_STAY, SPANS_STAY, Rule

_AGES = {"h": timedelta(hours=1), "d": timedelta(days=1)}
_MIB, _GIB = 1024 * 1024, 1024 * 1024 * 1024


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long data stays. Ages are hours or days such as `36h`, `90d`; `""` is forever. A size of 0 is no bound."""

    spans_max_age: Annotated[str, says("raw spans; at least 24h, within which a span that is sent again is told from a new one")] = "3d"
    spans_max_bytes: Annotated[int, says("bytes of sealed spans; those of the last 24 hours stay whatever their size")] = 0
    samples_max_age: Annotated[str, says("scraped and pushed metrics")] = "14d"
    samples_max_bytes: Annotated[int, says("bytes of samples, about")] = 0
    requests_max_age: Annotated[str, says("requests, and the values of theirs that were set aside")] = "90d"
    requests_max_bytes: Annotated[int, says("bytes of sealed requests")] = 0
    block_cells_max_age: Annotated[str, says("cells of single blocks of 300 s, once their hour is summed up")] = "14d"
    hour_cells_max_age: Annotated[str, says("cells of single hours, once their day is summed up")] = "90d"
    cells_max_age: Annotated[str, says("cells of single days, and effects, counted back from the newest")] = "400d"
    cells_max_bytes: Annotated[int, says("bytes of cells, about")] = 0
    evaluations_max_age: Annotated[str, says("quality scores")] = "1100d"
    decisions_max_age: Annotated[str, says("verdicts, flips and deliveries, counted back from the newest of each")] = "1830d"
    set_aside_max_age: Annotated[str, says("bodies that could not be loaded and were set aside")] = "30d"
    set_aside_max_bytes: Annotated[int, says("bytes of bodies that were set aside")] = 256 * _MIB
    min_free_bytes: Annotated[
        int, says("free space below which exports are refused; below twice as much the oldest spans go, then requests older than a week")
    ] = _GIB

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name.endswith("_max_age"):
                age(name, value)
            elif value < 0:
                msg = f"{name} = {value}: 0 or more bytes are taken"
                raise ValueError(msg)
        spans = age("spans_max_age", self.spans_max_age)
        if spans is not None and spans < SPANS_STAY:
            msg = f"spans_max_age = {self.spans_max_age!r}: 24h or more is taken, or a span that is sent again would be stored twice"
            raise ValueError(msg)


def age(key: str, text: str) -> timedelta | None:
    """A period from `36h` or `90d`; None from an empty text. Raises ValueError."""
    if not text:
        return None
    found = re.fullmatch(r"([1-9]\d{0,5})([hd])", text.strip())
    if not found:
        msg = f'{key} = {text!r}: hours or days such as "36h" or "90d" are taken, or "" for no end'
        raise ValueError(msg)
    return int(found[1]) * _AGES[found[2]]


def rules(asked: Retention) -> tuple[Rule, ...]:
    """A rule for each relation, those that free most first."""
    decisions = age("decisions_max_age", asked.decisions_max_age)
    return (
        Rule("spans", age("spans_max_age", asked.spans_max_age), asked.spans_max_bytes or None, SPANS_STAY),
        Rule("samples", age("samples_max_age", asked.samples_max_age), asked.samples_max_bytes or None),
        Rule("requests", age("requests_max_age", asked.requests_max_age), asked.requests_max_bytes or None, REQUESTS_STAY),
        Rule("block_cells", age("block_cells_max_age", asked.block_cells_max_age)),
        Rule("hour_cells", age("hour_cells_max_age", asked.hour_cells_max_age)),
        Rule("cells", age("cells_max_age", asked.cells_max_age), asked.cells_max_bytes or None),
        Rule("evaluations", age("evaluations_max_age", asked.evaluations_max_age)),
        *(Rule(relation, decisions) for relation in ("verdicts", "flips", "deliveries")),
    )
