"""Metric definitions: each metric is one row of data, read by reports, cells, policies, pages and documents.

Arithmetic is over columns of `requests` and written so that Python's grammar and SQL agree on it (see `measure.py`
and `queries/metric_sql.py`). A request counts where every column named is known and `known_when` holds.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

Kind = Literal["ratio", "mean", "quantile", "share", "contrast"]
Better = Literal["higher", "lower", "neither"]


class UnknownMetricError(KeyError):
    """A metric was asked for that no row defines."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: a ratio is sum(numerator) / sum(denominator); a mean, share or quantile is over its numerator.

    A contrast (kind `contrast`) needs the arms of a lever and is worked out by `queries/metric_sql.py: net ITL`.
    """

    name: str
    title: str
    kind: Kind
    unit: str
    better: Better
    numerator: str
    formula: str
    source: str
    denominator: str = "1"
    known_when: str = ""
    bounds: tuple[float | None, float | None] = (0.0, None)
    traps: tuple[str, ...] = ()
    missing: str = ""


_SKIPPED = Metric(
    name="skipped_token_ratio",
    title="Skipped prompt tokens",
    kind="ratio",
    unit="ratio",
    better="higher",
    numerator="cached_tokens",
    denominator="prompt_tokens",
    known_when="prompt_tokens > 0",
    bounds=(0.0, 1.0),
    formula="sum(cached_tokens) / sum(prompt_tokens), where both are known",
    source="SGLang span; vLLM response body (--enable-prompt-tokens-details)",
    traps=(
        "recompute after preemption once counted as a hit (vllm#25780)",
        "a decode leg may report prompt - 1 cached tokens (vllm#43370): the prefill leg is read",
    ),
    missing="cached tokens are not on this engine's span; a response tap brings them",
)
_HITS = Metric(
    name="cache_hit_rate",
    title="Cache hits",
    kind="share",
    unit="ratio",
    better="higher",
    numerator="cached_tokens > 0",
    bounds=(0.0, 1.0),
    formula="requests with any cached token / requests where cached tokens are known",
    source="as skipped_token_ratio",
    traps=("near 1 with a shared system prompt while few tokens are skipped: never a premise on its own",),
    missing=_SKIPPED.missing,
)
_ACCEPTANCE = Metric(
    name="draft_acceptance",
    title="Draft acceptance",
    kind="ratio",
    unit="ratio",
    better="higher",
    numerator="accepted_tokens",
    denominator="draft_tokens",
    known_when="draft_tokens > 0",
    bounds=(0.0, 1.0),
    formula="sum(accepted_tokens) / sum(draft_tokens), the bonus token in neither",
    source="response body (vLLM --per-request-spec-decode-metrics, SGLang meta_info.spec_*)",
    traps=("SGLang's spec_accept_rate counted the bonus before its change of April 2026",),
    missing="no engine puts draft acceptance on its span; a response tap brings it",
)
_LENGTH = Metric(
    name="acceptance_length",
    title="Acceptance length",
    kind="ratio",
    unit="tokens/step",
    better="higher",
    numerator="accepted_tokens + verify_steps",
    denominator="verify_steps",
    known_when="verify_steps > 0",
    bounds=(1.0, None),
    formula="1 + sum(accepted_tokens) / sum(verify_steps), the bonus token included",
    source="as draft_acceptance",
    missing=_ACCEPTANCE.missing,
)
_NET_ITL_FORMULA = (
    "(sum(decode_s) + n * max(0, mean ttft_s - control's mean ttft_s in the same block and stratum)) / sum(output_tokens - 1)"
)
_NET_ITL = Metric(
    name="net_itl_s",
    title="Net inter-token latency",
    kind="contrast",
    unit="s/token",
    better="lower",
    numerator="decode_s",
    denominator="output_tokens - 1",
    known_when="output_tokens >= 2",
    formula=_NET_ITL_FORMULA + "; equals tpot_s where there is no control",
    source="engine spans; the arms from leverwatch.arm.<lever>",
    traps=("chunk or step gaps are not ITL under speculation (vllm PR 50600)",),
    missing="decode time or output tokens are unknown",
)
_NET_ITL_GAIN = Metric(
    name="net_itl_gain",
    title="Net ITL gain",
    kind="contrast",
    unit="ratio",
    better="higher",
    numerator="decode_s",
    denominator="output_tokens - 1",
    known_when="output_tokens >= 2",
    bounds=(None, 1.0),
    formula="1 - treated net_itl_s / control net_itl_s",
    source="as net_itl_s",
    missing="no control arm: mark some replicas leverwatch.arm.<lever> = control",
)
_INTERCONNECT = Metric(
    name="interconnect_efficiency",
    title="Interconnect efficiency (KV transfer)",
    kind="ratio",
    unit="ratio",
    better="higher",
    numerator="kv_transfer_bytes",
    denominator="kv_transfer_s * link_peak_bytes_per_s",
    known_when="kv_transfer_s > 0 and link_peak_bytes_per_s > 0",
    bounds=(0.0, 1.0),
    formula="sum(kv_transfer_bytes) / sum(kv_transfer_s * link_peak_bytes_per_s), the peak in one direction",
    source="TensorRT-LLM per-request records; the peak from leverwatch.link_peak_bytes_per_s",
    traps=("a bandwidth above the link is a misreading (sglang#31877), set aside and not averaged",),
    missing="needs transfer bytes, transfer time and the link's peak; no collective times are exported by any engine",
)


def _latency(name: str, title: str, formula: str) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="quantile",
        unit="s",
        better="lower",
        numerator=name,
        formula=formula,
        source="engine, gateway or client span, one observation point a request",
        missing="the time is not on the span",
    )


METRICS: tuple[Metric, ...] = (
    _SKIPPED,
    _HITS,
    _ACCEPTANCE,
    _LENGTH,
    _NET_ITL,
    _NET_ITL_GAIN,
    _INTERCONNECT,
    Metric(
        name="tpot_s",
        title="Time per output token",
        kind="ratio",
        unit="s/token",
        better="lower",
        numerator="decode_s",
        denominator="output_tokens - 1",
        known_when="output_tokens >= 2",
        formula="sum(decode_s) / sum(output_tokens - 1), from 2 output tokens on",
        source="engine span",
        missing="decode time or output tokens are unknown",
    ),
    _latency("ttft_s", "Time to first token", "first token - request start"),
    _latency("e2e_s", "End-to-end latency", "last token - request start"),
    _latency("queue_s", "Queue time", "first scheduled - queued"),
    Metric(
        name="batch_at_admission",
        title="Batch at admission",
        kind="mean",
        unit="requests",
        better="neither",
        numerator="batch_at_admission",
        formula="mean batch of the replica when the request was admitted",
        source="engine span where it carries the batch",
        missing="the batch is not on this engine's span",
    ),
    Metric(
        name="error_rate",
        title="Error rate",
        kind="share",
        unit="ratio",
        better="lower",
        numerator="outcome == 'error'",
        known_when="outcome != 'aborted'",
        bounds=(0.0, 1.0),
        formula="requests that failed / requests that were not aborted",
        source="span status",
    ),
    Metric(
        name="abort_rate",
        title="Abort rate",
        kind="share",
        unit="ratio",
        better="lower",
        numerator="outcome == 'aborted'",
        bounds=(0.0, 1.0),
        formula="requests aborted by the client / all requests",
        source="finish reason; vLLM sends no span for an abort (vllm PR 32162), so it undercounts there",
    ),
)

CORE: tuple[str, ...] = (
    "skipped_token_ratio",
    "cache_hit_rate",
    "draft_acceptance",
    "acceptance_length",
    "net_itl_s",
    "net_itl_gain",
    "interconnect_efficiency",
)


@functools.cache
def by_name() -> dict[str, Metric]:
    """Every metric by its name."""
    return {metric.name: metric for metric in METRICS}


def chosen(names: tuple[str, ...] | None) -> tuple[Metric, ...]:
    """The metrics of these names, in their order; None gives the core ones, `("all",)` every one.

    Raises:
        UnknownMetricError: an unknown name, with the known ones.
    """
    if names is None:
        names = CORE
    if names == ("all",):
        return METRICS
    unknown = [name for name in names if name not in by_name()]
    if unknown:
        msg = f"metric {unknown[0]!r} is unknown; known: {', '.join(sorted(by_name()))}"
        raise UnknownMetricError(msg)
    return tuple(by_name()[name] for name in names)
