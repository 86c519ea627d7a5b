"""Metric rows in, the page that tells people what each number means out (`docs/metrics.md`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from pipeline.metric_row import Metric
from pipeline.metrics import CORE, by_subject, in_cells

HEAD = """# Metrics

Made from `pipeline/metric_rows_*.py` by `make golden`; change those, not this page. The same rows stand in the table `metrics`.

A request is *known* for a metric where every part of its arithmetic is; it *counts* where it is known and the metric's condition holds. The
report gives each value with `_n` (requests that count), `_coverage` (share that is known) and `_provenance`: `span`, `body` (a response),
`log`, `counter` (a counter of the replica, shared among its requests by their exposure), `sample` (a gauge of the replica as of admission),
`derived` (worked out from the others), `cells` (sums that were kept of requests: where they came from is not kept). What is not known is
null, never 0. Sums run over the requests that count. Of a contrast n is of the treated requests, and coverage is their known share.
"""
MOONCAKE = """Why a hit rate is no measure of a cache: the public Mooncake conversation trace, served with a prefix cache that never
forgets, has a `cache_hit_rate` of 0.999917 and a `skipped_token_ratio` of 0.373624. Nearly every conversation shares its first block with
some other, so nearly every request is a hit; of the tokens, five of eight are computed all the same. A policy that watched the hit rate
would see a perfect cache whatever happened to the savings.
"""
INTROS: Mapping[str, str] = {
    "Prefix cache": MOONCAKE,
    "Speculative decoding": """Accepted tokens leave out the bonus token that every verify step gives; `acceptance_length` takes it in. A
decode step without a draft is in no acceptance: `draft_coverage` says how many drafted.
""",
    "Latency": """Under speculation a step gives several tokens at once: gaps between chunks grow while the time per token falls. Arms are
compared by time per token; gaps and stalls watch for harm. Tails are percentiles over requests.
""",
    "Interconnect and parallelism": """Bandwidths are held against the link's peak in one direction.
""",
    "Load and memory": """What a request met where it ran: as its span says, else as the replica's time series said when it was admitted.
""",
    "Outcome, throughput and quality": """What is good is stated under `[slo]` in the configuration; without it the good fraction and
goodput are not known.
""",
    "Cost": """GPU seconds are attributed: a replica's GPUs, times its time, shared among the requests in flight at each moment.
""",
}


def page() -> str:
    """The whole page as Markdown, as without an SLO."""
    sections = [HEAD, "\n".join(_kinds())]
    sections += ["\n".join(_section(subject, rows)) for subject, rows in by_subject().items()]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _kinds() -> Iterator[str]:
    """The table of kinds, as the row's own class has it."""
    lines = (inspect.getdoc(Metric) or "").splitlines()
    yield "## Kinds"
    yield ""
    yield from (line for line in lines if line.startswith("|"))


def _section(subject: str, rows: tuple[Metric, ...]) -> Iterator[str]:
    yield f"## {subject}"
    yield ""
    yield INTROS[subject]
    yield from (line for metric in rows for line in _metric(metric))


def _metric(metric: Metric) -> Iterator[str]:
    yield f"### `{metric.name}`"
    yield ""
    yield f"{metric.title}, in {metric.unit}{', core' if metric.name in CORE else ''}. Kind {metric.kind}; {_better(metric)}."
    yield ""
    yield f"- Formula: {_plain(metric.formula)}."
    yield from _reads(metric)
    yield f"- Source: {_plain(metric.source)}."
    yield from (f"- Trap: {_plain(trap)}." for trap in metric.traps)
    if metric.missing:
        yield f"- Where it is missing: {_plain(metric.missing)}."
    yield ""


def _plain(text: str) -> str:
    """A text as Markdown shows it: `<lever>` would be taken for a tag, and not be seen."""
    return text.replace("<", "&lt;")


def _better(metric: Metric) -> str:
    better = "no better direction" if metric.better == "neither" else f"{metric.better} is better"
    return f"{better}; {'from cells too' if in_cells(metric) else 'from requests alone'}"


def _reads(metric: Metric) -> Iterator[str]:
    parts = {
        "numerator": metric.numerator,
        "denominator": "" if metric.denominator == "1" else metric.denominator,
        "times": metric.times,
        "across": metric.across,
        "percentiles of": metric.percentiles_of,
        "counts where": metric.known_when,
    }
    said = [f"{word} `{text}`" for word, text in parts.items() if text and text != "None"]
    if said:
        yield f"- Reads: {', '.join(said)}."
