"""What a comparison's URL says and what there is to choose from in, the forms of both sets and links to usual comparisons out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.choice import ANY, Choice, of_lever
from dashboards.filters import MOST_VALUES, UNKNOWN, Option, Select
from dashboards.page import Asked
from dashboards.two_sets import KEYS, SETS, SLOW
from pipeline.segments import LEVERS
from queries import files

PRESET_REPLICAS = 8
_LABELS = {"input_bucket": "tokens in", "temperature_bucket": "temperature", "arm": "lever arm", "slow": "slowest 5 % by"}


@dataclass(frozen=True)
class Form:
    """The form of one set: its name, what can be chosen, and the texts that can be typed, as (parameter, label, value, example)."""

    name: str
    selects: list[Select]
    texts: list[tuple[str, str, str, str]]


@dataclass(frozen=True)
class Preset:
    """A usual comparison: its words and its URL."""

    words: str
    url: str


Values = Mapping[str, list[str]]


def known(asked: Asked) -> Values:
    """The values of each key that requests had, those of most segments first."""
    found: dict[str, list[str]] = {}
    for name in ("page_filter_values", "page_compare_values"):
        for row in asked.reader.frame(files.question(name), {"values": MOST_VALUES}).iter_rows(named=True):
            found.setdefault(row["key"], []).append(row["value"])
    return found


def forms(told: Mapping[str, str], values: Values) -> list[Form]:
    """The forms of A and B; `told` is what the URL says of the sets."""
    return [_form(name, told, values) for name in SETS]


def _form(name: str, told: Mapping[str, str], values: Values) -> Form:
    named = {**values, "slow": list(SLOW)}
    keys = [key for key in (*KEYS, "arm", "slow") if named.get(key) or f"{name}.{key}" in told]
    texts = [("since", "from", "1h or a time"), ("until", "up to", "now"), ("where", "SQL condition", "prompt_tokens > 2000")]
    return Form(
        name,
        [_select(f"{name}.{key}", key, named.get(key, []), told.get(f"{name}.{key}")) for key in keys],
        [(f"{name}.{key}", label, told.get(f"{name}.{key}", ""), example) for key, label, example in texts],
    )


def _select(parameter: str, key: str, values: list[str], chosen: str | None) -> Select:
    listed = sorted({*values, *([chosen] if chosen else [])})
    options = [Option(ANY, "any", chosen is None), *(Option(value, _words(key, value), value == chosen) for value in listed)]
    if chosen == "":
        options.append(Option("", UNKNOWN, True))
    return Select(parameter, _LABELS.get(key, key), options)


def _words(key: str, value: str) -> str:
    arm, _, lever = value.partition(":")
    if key == "arm" and lever:
        return f"{lever} {arm}".replace("_", " ")
    return value


def presets(chosen: Choice, values: Values) -> list[Preset]:
    """Usual comparisons, within what the URL narrows both sets to."""
    arms = set(values.get("arm", []))
    levers = [lever for lever in LEVERS if {f"treated:{lever}", f"control:{lever}"} <= arms]
    found = [_arms(chosen, lever) for lever in levers]
    found.append(_preset("the last hour against the same hour yesterday", chosen, **{"a.since": "1h", "b.since": "25h", "b.until": "24h"}))
    found += [_preset(f"the slowest 5 % by {column} against the rest", chosen, **{"a.slow": column}) for column in SLOW[:3]]
    return found


def pooled(chosen: Choice, values: Values) -> str:
    """That a usual comparison takes all models together where the URL names none, and there are several; empty else."""
    models = len(values.get("model", []))
    if "model" in chosen.keys or models < 2:
        return ""
    said = f"These take all {models} models together: another mix of models can look like an effect."
    return f"{said} Choose a model above to compare like with like."


def replicas(chosen: Choice, values: Values) -> list[Preset]:
    """One replica against the others."""
    return [_preset(replica, chosen, **{"a.replica": replica}) for replica in values.get("replica", [])[:PRESET_REPLICAS]]


def _arms(chosen: Choice, lever: str) -> Preset:
    sets = {"a.arm": f"treated:{lever}", "b.arm": f"control:{lever}"}
    return _preset(f"{lever.replace('_', ' ')}: treated against control", chosen, lever, **sets)


def _preset(words: str, chosen: Choice, lever: str | None = None, **sets: str) -> Preset:
    """A lever narrows both sets by the keys it is judged by alone."""
    keys = of_lever(chosen.keys, lever) if lever else chosen.keys
    return Preset(words, chosen.changed("compare", {**sets, "lever": lever, "metric": None}, keys))
