"""Rows of traps in, the page that tells people how senders' numbers go wrong out (`docs/traps.md`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipeline.guard_counters import SERIES_TRAPS
from pipeline.guard_requests import REQUEST_TRAPS
from pipeline.impossible import MOST, MOST_JOINED
from pipeline.traps import SeriesTrap, Trap, link

HEAD = """# Traps

Made from `pipeline/guard_requests.py` and `pipeline/guard_counters.py` by `make golden`; change those, not this page.

Engines misreport. A value that cannot be true is *quarantined*: the request's column is null, the request is flagged `quarantined` and
`trap:<name>`, and a row of the table `quarantine` holds the value, the trap and the upstream issue. A value that may be true and does not
mean what it seems to is *suspect*: it stays, and the request is flagged `suspect` and `trap:<name>`. What only a replica's time series show
is a row of the table `suspicions`, with what was seen in numbers; values of requests that were shared out from such a series go with it.
What is only *noted* touches nothing of ours.

Where more than 10 % of an arm's requests fell into traps that spoil what an effect is made of, verdicts that rest on it are `frozen` with
reason code `suspicious_input`, and the stream keeps its state. `leverwatch doctor` lists what was caught and since when; `leverwatch
report` says on standard error what of its period was.
"""
# What is wrong, who found it, and what is read in its place.
READ_ELSEWHERE: tuple[tuple[str, str, str], ...] = (
    ("`spec_accept_rate` counted the bonus token until April 2026", "sglang#23530", "accepted and proposed drafts, never the rate"),
    ("`cache_hit_rate` of SGLang is that of the last prefill batch", "sglang#5625", "the counters of tokens"),
    ("`inter_token_latency_seconds` of vLLM is a step's", "vllm#50600", "decode time over tokens; the histogram is `step_s`"),
    ("n > 1 repeats the prompt's tokens in each child's span", "vllm#56361", "the prompt once, the outputs' sum"),
    ("`tgi_request_skipped_tokens` are accepted drafts, not skipped prompt tokens", "", "nothing"),
    ("`cached_tokens_total` of SGLang has its own total as one more label value", "", "the parts"),
)


def page() -> str:
    """The whole page as Markdown."""
    sections = [
        HEAD,
        "## Of one request\n\n" + "\n".join(_table(REQUEST_TRAPS)),
        "## Bounds of one request\n\n" + "\n".join(_bounds()),
        "## Of a replica's time series\n\n" + "\n".join(_table(SERIES_TRAPS)),
        "## Read so that they cannot catch us\n\n" + "\n".join(_elsewhere()),
    ]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _table(traps: Iterable[Trap | SeriesTrap]) -> Iterator[str]:
    yield "| trap | columns | what is wrong | upstream | becomes |"
    yield "|---|---|---|---|---|"
    for trap in traps:
        columns = ", ".join(f"`{column}`" for column in trap.columns)
        yield f"| `{trap.name}` | {columns} | {trap.reason} | {_linked(trap.upstream)} | {trap.severity} |"


def _bounds() -> Iterator[str]:
    yield f"Below 0 a clock was stepped; -1 of `queue_s` or `ttft_s` is TensorRT-LLM's word for missing: {_linked('TensorRT-LLM#5897')}."
    yield "Above these no request has more. The traps are `<column>_minus_one`, `<column>_negative` and `<column>_beyond`."
    yield ""
    yield "| at most | columns |"
    yield "|---|---|"
    for most in sorted(MOST):
        columns = (*MOST[most], *MOST_JOINED.get(most, ()))
        yield f"| {most:g} | {', '.join(f'`{column}`' for column in columns)} |"


def _elsewhere() -> Iterator[str]:
    yield "| trap | upstream | what is read |"
    yield "|---|---|---|"
    yield from (f"| {wrong} | {_linked(upstream)} | {read} |" for wrong, upstream, read in READ_ELSEWHERE)


def _linked(upstream: str) -> str:
    address = link(upstream)
    return f"[{upstream}]({address})" if address else upstream
