"""What a URL chooses and what there is to choose from in, a page's filter bar out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboards.choice import ANY, FILTER_KEYS, PERIODS, Choice
from dashboards.page import Asked
from pipeline.segments import LEVERS
from queries import files

MOST_VALUES = 200
UNKNOWN = "unknown"
_LABELS = {"input_bucket": "tokens in", "temperature_bucket": "temperature"}


@dataclass(frozen=True)
class Option:
    """One value that a filter may have."""

    value: str
    words: str
    is_chosen: bool


@dataclass(frozen=True)
class Select:
    """One filter: a key of segments, or the lever."""

    name: str
    label: str
    options: list[Option]


@dataclass(frozen=True)
class Bar:
    """A form that a page is asked again with, and links that change its period alone. `hidden` is what the form takes along unseen."""

    action: str
    selects: list[Select]
    hidden: list[tuple[str, str]]
    periods: list[tuple[str, str, bool]]
    is_narrowed: bool
    everything: str


def bar(asked: Asked, chosen: Choice, keys: Sequence[str] = FILTER_KEYS, *, levers: Sequence[str] = LEVERS, own: Sequence[str] = ()) -> Bar:
    """The bar of a page. `keys` are the segment keys that it filters by; keys without any known value are left out.

    No `levers` means that the page takes none; `own` names parameters of the page itself that a change of filter is to keep.
    """
    action = asked.path.strip("/") or "./"
    known = _known(asked)
    selects = [_select(key, known.get(key, []), chosen.keys.get(key)) for key in keys if known.get(key) or key in chosen.keys]
    if levers:
        options = [Option(name, name.replace("_", " "), name == chosen.lever) for name in levers]
        selects.append(Select("lever", "lever", [Option(ANY, "any", chosen.lever is None), *options]))
    shown = {select.name for select in selects}
    kept: dict[str, str | None] = {name: value for name, value in asked.query.items() if name in own}
    hidden = [(name, value) for name, value in {**chosen.query, **kept}.items() if value and name not in shown]
    periods = [(name, chosen.changed(action, {**kept, "since": name, "until": None}), name == chosen.since_text) for name in PERIODS]
    everything = chosen.changed(action, {**kept, "lever": None, "metric": None}, keys={})
    return Bar(action, selects, hidden, periods, bool(chosen.keys or chosen.lever), everything)


def _known(asked: Asked) -> Mapping[str, list[str]]:
    """The values of each key that requests had, those of most segments first."""
    found: dict[str, list[str]] = {}
    for row in asked.reader.frame(files.question("page_filter_values"), {"values": MOST_VALUES}).iter_rows(named=True):
        found.setdefault(row["key"], []).append(row["value"])
    return found


def _select(key: str, values: Sequence[str], chosen: str | None) -> Select:
    listed = sorted({*values, *([chosen] if chosen else [])})
    options = [Option(ANY, "any", chosen is None), *(Option(value, value, value == chosen) for value in listed)]
    if chosen == "":
        options.append(Option("", UNKNOWN, True))
    return Select(key, _LABELS.get(key, key), options)
