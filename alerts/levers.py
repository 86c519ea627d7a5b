"""The fixed words of decisions: levers, verdicts, actions and states; a wrong word gets its nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Literal

from pipeline.segments import LEVERS as LEVERS

MOST_SHOWN, MOST_CLOSE = 60, 3  # characters of an unknown name, and names like it, that are told
Verdict = Literal["keep", "disable", "insufficient", "frozen", "conflicted"]
Action = Literal[
    "keep",
    "disable",
    "shorten",
    "reduce",
    "restore_precision",
    "lower_degree",
    "collapse",
    "add_prefill",
    "add_decode",
    "raise_threshold",
    "lower_threshold",
    "hold",
    "widen",
    "enable",
]
State = Literal["on", "off_recommended", "off", "probation"]
ACTIONS: Mapping[str, tuple[Action, ...]] = {
    "speculation": ("shorten",),
    "cache_affinity": ("reduce",),
    "weight_quantization": ("restore_precision",),
    "activation_quantization": ("restore_precision",),
    "kv_quantization": ("restore_precision",),
    "tensor_parallel": ("lower_degree",),
    "expert_parallel": ("lower_degree",),
    "pipeline_parallel": ("lower_degree",),
    "disaggregation": ("collapse",),
    "pool_ratio": ("add_prefill", "add_decode"),
    "conditional_prefill": ("raise_threshold", "lower_threshold"),
}
"""What may be advised of a lever beside to disable it."""
WITHOUT_CONTROL = ("pool_ratio",)
"""Levers that seldom run beside a control arm: their premises may decide alone."""
ENGINES = (
    "vllm",
    "sglang",
    "trtllm",
    "dynamo",
    "tgi",
    "lmdeploy",
    "llm-d",
    "litellm",
    "envoy",
    "openinference",
    "openllmetry",
    "genai",
)
"""Engines and gateways, by the names that `requests` has them under."""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known: `lever 'x' is unknown; did you mean 'y'? known: ...`."""
    names = sorted(known)
    close = difflib.get_close_matches(name[:MOST_SHOWN], names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{what} {_cut(name)} is unknown; {hint}known: {', '.join(names)}"


def unknown_of_many(what: str, name: str, known: Iterable[str], listing: str) -> str:
    """The same where the known ones are too many for a line: the nearest, and the command that lists all."""
    close = difflib.get_close_matches(name[:MOST_SHOWN], sorted(known), n=MOST_CLOSE)
    hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    return f"{what} {_cut(name)} is unknown; {hint}`{listing}` lists all"


def _cut(name: str) -> str:
    """A name as it came, in quotes, control characters escaped; of a long one its beginning."""
    text = repr(name) if name.isprintable() else ascii(name)
    return text if len(name) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}... ({len(name)} characters)"
