"""The shipped policies in, the page that tells people what each looks at and advises out (`docs/policies.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from alerts.chain import Condition, Policy, code_of

HEAD = """# Policies

Made from `alerts/policies/*.toml` by `make golden`; change those, not this page. `leverwatch policy show NAME` prints a file.

A policy is one lever's whole causal chain: what holds the traffic back, what makes the lever worth having, which budget it spends, what it
is to bring, how it fails, what may not suffer, when it is no longer advised and how to go back. `leverwatch policy check FILE` refuses a
file that lacks a part, names a metric that nobody measures, has a number or text out of its bounds, or whose parts do not hang together.

- A **trigger** that holds for its blocks of five minutes advises its action. Where a control arm runs, a measured loss decides (`harm`),
  and a lost premise stands beside it; where none runs, the premise may decide, and the notice says that harm was not measured.
- A trigger with a further condition (`where`) takes the place of the one without on the same metric: it says more of why.
- While a **gate** is broken the lever is neither widened nor switched on again; a lever that pays is kept and held.
- **Advice** is said in the reason, and switches nothing.
- Of levers that **go before** others the recommendation comes first where both want to act on the same traffic.

What is held against control is the treated arm: `x 1.02` is 2 % more than control has. Ratios are 0 to 1. A threshold's source is a figure
that somebody published, arithmetic, or a judgment that says so.

## What a threshold is held against

`leverwatch policy metrics` lists the metrics that a policy may name, each with its unit, what a threshold on it may be, and which of these
it is:

| held against | metrics | a condition holds |
|---|---|---|
| control, by evidence | times per request and per token, percentiles, errors | once there is evidence that the gain is past the limit |
| control, by its interval | `queue_s`, `gpu_s_per_output_token`, `quality` | where the whole interval (of quality: its noise) is past it |
| threshold | what treated has alone, such as `acceptance_length` | where its value is past it; without a control, once that is evident |

**Evidence, and not the gain that is shown.** The gain with its interval describes the last two hours and is looked at every five minutes;
to act on it would be to be wrong far more often than it says. Evidence adds up over blocks and may be looked at at any time. It is kept for
the gains -10, -5, -2, 0, 2, 5 and 10 %, and read at the nearest of these *at or beyond* the limit:

| limit | from | read at |
|---|---|---|
| -2 % | `threshold = -0.02` on a gain, or `relative_to_control = 1.02` on a time | -2 % |
| -3 % | `relative_to_control = 1.03` | -5 %: a loss of 4 % is past the limit, and never acted on |
| +5 % | `threshold = 0.05` to switch on again | +5 % |
| -25 % | `relative_to_control = 1.25` | evidence of -10 %, and the whole interval past -25 % |

In numbers, with a limit of -2 %: a gain of -6 % (-30..+8 %) recommends where evidence says that it is below -2 %, and does not while
evidence is short of that; so -6 % may be shown for an hour and nothing is advised. A gain of -1.5 % (-1.9..-1.1 %) never does, however sure
it is. Before evidence can be had (how much blocks vary by themselves takes 48 comparisons, each of 100 requests of control and 5 minutes at
least) nothing is recommended, and nothing switched on again: where the interval says that the lever loses, the verdict is `insufficient`,
the code `unscaled`. Where control's replicas differ by themselves, the limit moves outward by as much, and the reason says so.
Without a control arm, see [switchback.md](switchback.md).

## One's own policies

`[alerts] policies = "DIR"` in `leverwatch.toml` names a folder of one's own: each `.toml` file in it is a policy. One with the `name` of a
shipped policy takes its place, any other joins; two policies may be on one lever and metric. `shadow = true` judges without telling
anybody. A file that cannot be used keeps the server from starting, with the file, the key and what it takes: a policy that is silently left
out would be worse; so does a second file with the same `name`. `x.cases.toml` beside `x.toml` holds cases for `leverwatch policy
test`.
"""
SIGNS = {"above": ">", "below": "<"}


def page(policies: Sequence[Policy]) -> str:
    """The whole page as Markdown."""
    sections = [HEAD, "\n".join(_overview(policies)), *("\n".join(_section(policy)) for policy in policies)]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _overview(policies: Sequence[Policy]) -> Iterator[str]:
    yield "## What is advised of which lever"
    yield ""
    yield from _table(("lever", "policy", "benefit", "advised", "goes before", "revalidates"), map(_line, policies))


def _line(policy: Policy) -> tuple[str, ...]:
    actions = dict.fromkeys(trigger.action for trigger in policy.disable_when)
    named = f"[`{policy.name}`](#{policy.lever})"
    return (
        policy.lever,
        named,
        f"`{policy.expected_benefit.metric}`",
        ", ".join(actions),
        _listed(policy.goes_before),
        _listed(policy.revalidates),
    )


def _section(policy: Policy) -> Iterator[str]:
    yield f"## {policy.lever}"
    yield ""
    yield f"`{policy.name}`, version {policy.version}, severity {policy.severity}; at least {policy.minimum_blocks} blocks and"
    yield f"{policy.minimum_requests} requests of an arm, known of {100 * policy.minimum_coverage:.0f} % of them."
    yield ""
    yield from _chain(policy)
    yield ""
    yield "### Triggers"
    yield ""
    yield from _table(("reason code", "holds where", "blocks", "advises", "source"), _triggers(policy))
    yield ""
    yield "### Gates"
    yield ""
    rows = ((gate.covers, _where(gate), gate.source) for gate in policy.gates)
    yield from _table(("covers", "broken where", "source"), rows)
    for advice in policy.advise_when:
        held = " and ".join(map(_where, (advice, *advice.where)))
        yield ""
        yield f"**Advice** where {held} for {advice.for_blocks} blocks: {advice.advice}. Source: {'; '.join(_sources(advice))}."
    yield ""
    yield "### Back again"
    yield ""
    back, enabling, dwell_min = policy.re_enable_when, policy.enabling_condition, policy.dwell_s / 60
    yield f"On again where {_where(back)} for {back.for_blocks} blocks, {dwell_min:.0f} minutes after it was advised off at the earliest."
    yield f"Source: {back.source}. Once it was switched off it is advised again only where {_where(enabling)} too: {enabling.source}."
    yield ""
    yield from (f"{number}. {step}" for number, step in enumerate(policy.rollback.steps, 1))
    yield ""
    yield from _table(("engine", "what to change"), _engines(policy))
    yield ""


def _chain(policy: Policy) -> Iterator[str]:
    held, spent, failure, gate = policy.measured_bottleneck, policy.receiving_budget, policy.failure_mode, policy.quality_gate
    yield f"- **Bottleneck**: {held.phase}, {held.resource} (`{held.metric}`): {held.because}."
    yield f"- **Enabled** where {_where(policy.enabling_condition)}: {policy.enabling_condition.because}."
    yield f"- **Spends** {spent.budget} (`{spent.metric}`): {spent.because}."
    yield f"- **Brings** `{policy.expected_benefit.metric}`: {policy.expected_benefit.because}."
    yield f"- **Fails** by `{failure.metric}`: {failure.because}."
    yield f"- **Quality**: suites of kind {gate.kind}, {gate.repeats} repeats, none older than {gate.max_age_days:g} days: {gate.because}."


def _triggers(policy: Policy) -> Iterator[tuple[str, ...]]:
    for trigger in policy.disable_when:
        held = " and ".join(map(_where, (trigger, *trigger.where)))
        again = getattr(trigger, "re_enable_at", None)
        held += f" (good again at {again:g})" if again is not None else ""
        yield f"`{code_of(policy, trigger)}`", held, str(trigger.for_blocks), trigger.action, "; ".join(dict.fromkeys(_sources(trigger)))


def _sources(trigger: Any) -> Iterator[str]:
    yield trigger.source
    yield from (one.source for one in trigger.where)


def _engines(policy: Policy) -> Iterator[tuple[str, str]]:
    for engine, text in policy.rollback.engine.items():
        yield engine, text if isinstance(text, str) else "; ".join(text)


def _where(condition: Condition) -> str:
    sign = SIGNS[condition.is_]
    factor = getattr(condition, "relative_to_control", None)
    if factor is not None:
        return f"`{condition.metric}` {sign} {'original' if condition.metric == 'quality' else 'control'} x {factor:g}"
    unit = "" if condition.unit == "ratio" else f" {condition.unit}"
    return f"`{condition.metric}` {sign} {condition.threshold:g}{unit}"


def _listed(levers: Sequence[str]) -> str:
    return ", ".join(levers) or "-"


def _table(heads: Sequence[str], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
