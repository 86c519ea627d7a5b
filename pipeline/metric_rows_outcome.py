"""Rows of outcome: what failed, what was good under a stated SLO, how much was served, and whether answers stayed as good."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.metric_row import Metric


@dataclass(frozen=True, slots=True)
class Slo:
    """What a good request keeps to, each limit in seconds and inclusive; None is no limit."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None


NO_SLO = Slo()
_JUDGED = "outcome == 'ok' or outcome == 'error'"
_SET_SLO = "no SLO is stated: set [slo] ttft_s, tpot_s or e2e_s"
_SLO_TRAPS = (
    "vLLM's benchmark leaves failures out, so a failing arm looks good: here they count as not good",
    "requests of unknown outcome, and those the client aborted, are left out",
)


def good(slo: Slo) -> str:
    """Arithmetic that is true of a good request, `None` without a stated SLO. One token has no time per token, and keeps to it."""
    limits = []
    if slo.ttft_s is not None:
        limits.append(f"ttft_s <= {slo.ttft_s!r}")
    if slo.tpot_s is not None:
        limits.append(f"(output_tokens < 2 or tpot_s <= {slo.tpot_s!r})")
    if slo.e2e_s is not None:
        limits.append(f"e2e_s <= {slo.e2e_s!r}")
    return " and ".join(["outcome == 'ok'", *limits]) if limits else "None"


def _stated(slo: Slo) -> str:
    limits = {"ttft_s": slo.ttft_s, "tpot_s": slo.tpot_s, "e2e_s": slo.e2e_s}
    said = [f"{name} <= {limit:g}" for name, limit in limits.items() if limit is not None]
    return f"good: succeeded with {' and '.join(said)} ([slo])" if said else "what is good [slo] states; without it none is known to be"


def slo_rows(slo: Slo) -> tuple[Metric, ...]:
    """The rows of what is good under this SLO."""
    is_good, stated = good(slo), _stated(slo)
    missing = _SET_SLO if is_good == "None" else "a time that the SLO limits is unknown"
    return (
        Metric(
            name="good_fraction",
            title="Good requests",
            kind="share",
            unit="ratio",
            better="higher",
            numerator=is_good,
            known_when=_JUDGED,
            bounds=(0.0, 1.0),
            formula=f"good requests / requests that succeeded or failed; {stated}",
            source="engine, gateway or client span",
            traps=_SLO_TRAPS,
            missing=missing,
            is_configured=True,
        ),
        Metric(
            name="goodput_requests_per_s",
            title="Goodput",
            kind="rate",
            unit="requests/s",
            better="higher",
            numerator="1",
            known_when=is_good,
            formula=f"good requests per second of the period; {stated}",
            source="as good_fraction",
            traps=("follows the traffic: how much arrives is not the lever's doing; good_fraction is its measure", *_SLO_TRAPS),
            missing=missing,
            is_configured=True,
        ),
        Metric(
            name="goodput_output_tokens_per_s",
            title="Goodput in output tokens",
            kind="rate",
            unit="tokens/s",
            better="higher",
            numerator="output_tokens",
            known_when=is_good,
            formula=f"output tokens of good requests per second of the period; {stated}",
            source="as good_fraction",
            traps=("follows the traffic, as goodput_requests_per_s", *_SLO_TRAPS),
            missing=missing,
            is_configured=True,
        ),
    )


def _throughput(name: str, title: str, unit: str, numerator: str, formula: str) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="rate",
        unit=unit,
        better="neither",
        numerator=numerator,
        formula=formula,
        source="engine, gateway or client span",
        traps=("a sampled trace holds a part of the traffic: scaled by the sampling found, or refused",),
        missing="" if numerator == "1" else f"{numerator} is not on the span",
    )


ROWS = (
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
    _throughput("requests_per_s", "Requests per second", "requests/s", "1", "requests per second of the period reported"),
    _throughput(
        "output_tokens_per_s",
        "Output tokens per second",
        "tokens/s",
        "output_tokens",
        "sum(output_tokens) per second of the period reported",
    ),
    _throughput(
        "prompt_tokens_per_s",
        "Prompt tokens per second",
        "tokens/s",
        "prompt_tokens",
        "sum(prompt_tokens) per second of the period reported",
    ),
    Metric(
        name="output_length",
        title="Output length",
        kind="mean",
        unit="tokens",
        better="neither",
        numerator="output_tokens",
        percentiles_of="output_tokens",
        formula="mean(output_tokens); p50, p95, p99 over requests",
        source="engine span",
        missing="output tokens are not on the span",
    ),
    Metric(
        name="length_ratio",
        title="Length ratio",
        kind="contrast",
        unit="ratio",
        better="neither",
        numerator="output_tokens",
        formula="treated mean output_tokens / control mean output_tokens",
        source="engine spans; the arms from leverwatch.arm.<lever>",
        traps=("a lever that changes answers' length changes every number per request: quantization, and lossy speculation",),
        missing="no control arm: mark some replicas leverwatch.arm.<lever> = control",
    ),
    Metric(
        name="quality",
        title="Quality against the original",
        kind="contrast",
        unit="ratio",
        better="higher",
        numerator="",
        formula="mean score of the setting / mean score of the original, same suite and model; the inverse where lower scores are better",
        source="table evaluations: gen_ai.evaluation.result events, POST /api/evaluations",
        traps=("repeats of the original differ among themselves: a ratio within that range says nothing",),
        missing="no scores of both the setting and the original: send evaluations with leverwatch.lever.<name> and setting = original",
    ),
)
