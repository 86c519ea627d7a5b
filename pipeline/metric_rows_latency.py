"""Rows of latency: first token, each further token, gaps between chunks, and each phase's share of a request's life."""

from __future__ import annotations

from pipeline.metric_row import Metric

_NET_ITL_FORMULA = (
    "(sum(decode_s) + n * max(0, mean ttft_s - control's mean ttft_s in the same block and stratum)) / sum(output_tokens - 1)"
)
_TAP = "gaps between chunks are seen by the response tap alone: put it in front"


def _percentiles(name: str, title: str, formula: str, traps: tuple[str, ...] = ()) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="quantile",
        unit="s",
        better="lower",
        numerator=name,
        formula=formula,
        source="engine, gateway or client span, one observation point a request",
        traps=traps,
        missing="the time is not on the span",
    )


def _gap(name: str, title: str, formula: str, traps: tuple[str, ...] = ()) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="quantile",
        unit="s",
        better="lower",
        numerator=name,
        formula=formula,
        source="response tap",
        traps=("percentiles of requests, not of gaps: long answers do not weigh more", *traps),
        missing=_TAP,
    )


def _share(phase: str, column: str, missing: str, traps: tuple[str, ...] = ()) -> Metric:
    return Metric(
        name=f"{phase}_share",
        title=f"Share of {phase}",
        kind="ratio",
        unit="ratio",
        better="neither",
        numerator=column,
        denominator="e2e_s",
        known_when="e2e_s > 0",
        bounds=(0.0, 1.0),
        formula=f"sum({column}) / sum(e2e_s), where both are known",
        source="engine span",
        traps=("each share is over the requests whose phase is known: shares of different coverage do not add up to 1", *traps),
        missing=missing,
    )


ROWS = (
    Metric(
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
    ),
    Metric(
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
    ),
    Metric(
        name="tpot_s",
        title="Time per output token",
        kind="ratio",
        unit="s/token",
        better="lower",
        numerator="decode_s",
        denominator="output_tokens - 1",
        known_when="output_tokens >= 2",
        percentiles_of="tpot_s",
        formula="sum(decode_s) / sum(output_tokens - 1), from 2 output tokens on; p50, p95, p99: of each request's own, each request alike",
        source="engine span",
        traps=(
            "a benchmark's ITL may be the gap between chunks, which rises under speculation while this falls (vllm PR 50600)",
            "dividing gaps by the accepted length mends the mean alone (sglang#12064: 8.72 ms told, about 3.4 true)",
            "a request of one token has none: MLPerf's loadgen divides by -1, vLLM's benchmark takes 0",
        ),
        missing="decode time or output tokens are unknown",
    ),
    Metric(
        name="tpot_by_request_s",
        title="Time per output token, each request alike",
        kind="mean",
        unit="s/token",
        better="lower",
        numerator="tpot_s",
        formula="mean over requests of decode_s / (output_tokens - 1): another number than tpot_s, which weighs tokens alike",
        source="engine span",
        traps=("AIPerf calls this inter-token latency",),
        missing="decode time or output tokens are unknown",
    ),
    _percentiles(
        "ttft_s",
        "Time to first token",
        "first token - request start",
        (
            "vLLM's time_to_first_token_ms of a request starts when it is scheduled; its span's when it arrives",
            "an empty first chunk is no token: AIPerf leaves it out",
        ),
    ),
    _percentiles("e2e_s", "End-to-end latency", "last token - request start"),
    _percentiles("queue_s", "Queue time", "first scheduled - queued"),
    _percentiles(
        "prefill_s",
        "Prefill time",
        "first token - first scheduled",
        ("chunked prefill shares its steps with decoding: the time holds both",),
    ),
    Metric(
        name="chunk_gap_s",
        title="Chunk gap",
        kind="ratio",
        unit="s",
        better="lower",
        numerator="e2e_s - ttft_s",
        denominator="chunks - 1",
        known_when="chunks >= 2",
        formula="sum(e2e_s - ttft_s) / sum(chunks - 1), from 2 chunks on: the mean gap, each gap alike",
        source="response tap",
        traps=("vLLM's benchmark calls this ITL; speculation widens gaps while tokens come faster (vllm PR 50600): a guardrail, no gain",),
        missing=_TAP,
    ),
    _gap("chunk_gap_p50_s", "Median chunk gap", "of each request its median gap; p50, p95, p99 of these over requests"),
    _gap("chunk_gap_p95_s", "Chunk gap p95", "of each request the 95th percentile of its gaps; p50, p95, p99 of these over requests"),
    _gap("chunk_gap_p99_s", "Chunk gap p99", "of each request the 99th percentile of its gaps; p50, p95, p99 of these over requests"),
    _gap(
        "chunk_gap_max_s",
        "Longest chunk gap",
        "of each request its longest gap; p50, p95, p99 of these over requests",
        ("the longest of many gaps is longer: compare answers of like length",),
    ),
    Metric(
        name="stall_share",
        title="Share of time in stalls",
        kind="ratio",
        unit="ratio",
        better="lower",
        numerator="stall_s",
        denominator="decode_s",
        known_when="decode_s > 0",
        formula="sum(stall_s) / sum(decode_s); a stall is a gap of at least 0.5 s and 5 times the request's median gap",
        source="response tap; decode time of the engine's span",
        traps=("the tap sees the network too: what the client waits for, not what the engine did",),
        missing=_TAP,
    ),
    Metric(
        name="burst_tokens_per_chunk",
        title="Tokens per chunk",
        kind="ratio",
        unit="tokens/chunk",
        better="neither",
        numerator="output_tokens - 1",
        denominator="chunks - 1",
        known_when="chunks >= 2 and output_tokens >= 2",
        formula="sum(output_tokens - 1) / sum(chunks - 1): what comes at once after the first",
        source="response tap",
        traps=("above 1 under speculation, and where the engine streams every n tokens (stream_interval)",),
        missing=_TAP,
    ),
    _share("queue", "queue_s", "queue time is not on this engine's span"),
    _share("prefill", "prefill_s", "prefill time is not on this engine's span"),
    _share(
        "transfer",
        "kv_transfer_s",
        "no KV transfer is told of: only disaggregated requests have one",
        ("the transfer's whole time: what of it was overlapped shows in kv_transfer_exposed_share",),
    ),
    _share("decode", "decode_s", "decode time is not on this engine's span"),
    Metric(
        name="bottleneck",
        title="Binding bottleneck",
        kind="label",
        unit="phase:resource",
        better="neither",
        numerator="queue_s + prefill_s + decode_s",
        denominator="e2e_s",
        known_when="e2e_s > 0",
        formula="the phase that binds (queue, prefill, transfer, decode) and the resource it waits for, with the numbers that say so",
        source="the shares of the phases, KV usage, preemptions, queue growth, exposed transfer, communication",
        traps=("a share says where time goes, not what would shorten it: a queue's cause is the phase behind it",),
        missing="the phases' times are not on this engine's span",
    ),
)
