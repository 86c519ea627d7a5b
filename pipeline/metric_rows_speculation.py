"""Rows of speculative decoding: what was drafted, what of it was taken, at which position, and how often it was tried."""

from __future__ import annotations

from pipeline.metric_row import Metric

_MISSING = "no engine puts draft acceptance on its span; a response tap brings it"
_POSITIONS_MISSING = (
    "acceptance by position is only in response bodies (vLLM --per-request-spec-decode-metrics, SGLang's meta_info); a tap brings it"
)
_SOURCE = "response body (vLLM --per-request-spec-decode-metrics, SGLang meta_info.spec_*)"
POSITIONS = (1, 2, 3, 4, 5)


def _marginal(position: int) -> Metric:
    return Metric(
        name=f"acceptance_at_{position}",
        title=f"Acceptance at position {position}",
        kind="ratio",
        unit="ratio",
        better="higher",
        numerator=f"accepted_by_position[{position}]",
        denominator="verify_steps",
        known_when="verify_steps > 0",
        bounds=(0.0, 1.0),
        formula=f"sum(steps that accepted at least {position}) / sum(verify_steps): marginal, over all steps",
        source="the histogram of accepted drafts in a response body",
        traps=(
            "SGLang's histogram of n-gram drafting was off by one before its change 24965",
            "drafts shorter than the position are in the denominator: it falls with the length of drafts too",
        ),
        missing=_POSITIONS_MISSING,
    )


def _conditional(position: int) -> Metric:
    before = f"accepted_by_position[{position - 1}]" if position > 1 else "verify_steps"
    given = f"at least {position - 1}" if position > 1 else "any number"
    return Metric(
        name=f"conditional_acceptance_at_{position}",
        title=f"Conditional acceptance at position {position}",
        kind="ratio",
        unit="ratio",
        better="higher",
        numerator=f"accepted_by_position[{position}]",
        denominator=before,
        known_when=f"{before} > 0",
        bounds=(0.0, 1.0),
        formula=f"sum(steps that accepted at least {position}) / sum(steps that accepted {given}): the drafter's own quality",
        source=f"as acceptance_at_{position}",
        traps=("with drafts of varying length, steps that drafted fewer stand in the denominator: the engines do not say how many",),
        missing=_POSITIONS_MISSING,
    )


ROWS = (
    Metric(
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
        source=_SOURCE,
        traps=(
            "SGLang's spec_accept_rate counted the bonus before its change of April 2026 (sglang PR 23530)",
            "SGLang's rate could pass 1 before that (sglang PR 11572)",
            "of a drafted tree the nodes are counted: not comparable with a chain's; acceptance_length is",
            "a binomial interval over tokens is wrong: acceptance comes in requests and topics",
        ),
        missing=_MISSING,
    ),
    Metric(
        name="draft_acceptance_by_request",
        title="Draft acceptance, each request alike",
        kind="mean",
        unit="ratio",
        better="higher",
        numerator="accepted_tokens / draft_tokens",
        known_when="draft_tokens > 0",
        bounds=(0.0, 1.0),
        formula="mean over requests of accepted_tokens / draft_tokens: another number than draft_acceptance, which weighs tokens alike",
        source=_SOURCE,
        traps=("short answers weigh as much as long ones; 0.46 stood beside a token-weighted 0.42 on the same requests",),
        missing=_MISSING,
    ),
    Metric(
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
        traps=(
            "vLLM left the bonus out before PR 17908 (May 2025)",
            "TensorRT-LLM's acceptanceLength is over requests with a draft alone; its avgNumDecodedTokensPerIter is over all",
        ),
        missing=_MISSING,
    ),
    Metric(
        name="emitted_tokens_per_step",
        title="Emitted tokens per verify step",
        kind="ratio",
        unit="tokens/step",
        better="higher",
        numerator="min(accepted_tokens + verify_steps, output_tokens - 1)",
        denominator="verify_steps",
        known_when="verify_steps > 0 and output_tokens >= 1",
        formula="sum(least(accepted_tokens + verify_steps, output_tokens - 1)) / sum(verify_steps); the first token comes from prefill",
        source="as draft_acceptance; output tokens of the span",
        traps=("the gap to acceptance_length is what was accepted and thrown away; an upper bound where steps drafted nothing",),
        missing=_MISSING,
    ),
    Metric(
        name="draft_coverage",
        title="Draft coverage",
        kind="ratio",
        unit="ratio",
        better="higher",
        numerator="verify_steps",
        denominator="max(verify_steps, output_tokens - 1 - accepted_tokens)",
        known_when="output_tokens >= 2",
        bounds=(0.0, 1.0),
        formula="sum(verify_steps) / sum(decode steps); decode steps = output_tokens - 1 - accepted_tokens, and no fewer than verify_steps",
        source="as draft_acceptance; output tokens of the span",
        traps=("n-gram and adaptive drafters skip steps: acceptance looks fine while coverage collapses",),
        missing=_MISSING,
    ),
    Metric(
        name="draft_length",
        title="Draft length",
        kind="ratio",
        unit="tokens/step",
        better="neither",
        numerator="draft_tokens",
        denominator="verify_steps",
        known_when="verify_steps > 0",
        formula="sum(draft_tokens) / sum(verify_steps)",
        source=_SOURCE,
        traps=("SGLang's speculative_num_draft_tokens counts a tree's nodes, not its depth",),
        missing=_MISSING,
    ),
    *(_marginal(position) for position in POSITIONS),
    *(_conditional(position) for position in POSITIONS),
)
