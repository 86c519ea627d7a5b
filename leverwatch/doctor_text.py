"""A diagnosis as JSON has it in, lines for a terminal of 120 columns out: replicas that are alike share one block."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WIDTH = 118
GROUP_OF = {"draft_acceptance": "drafts", "interconnect_efficiency": "transfer"}
MOST_ROWS, MOST_REPLICAS, MOST_REASONS = 12, 8, 10
STATUS = {
    0: "every core metric can be computed where it applies",
    1: "cannot be computed: ",
    3: "cannot tell: no requests in this period",
}
UNSERVED = "refused or given up, of which no engine spoke: nothing is asked of them"
NOT_SERVED = "cannot tell: no engine served a request in this period"
ROLES = {"parts": "its spans are parts of others' requests", "housekeeping": "start-up spans alone, no request yet"}
Diagnosis = Mapping[str, Any]


def text(told: Diagnosis) -> str:
    """The whole diagnosis, plain ASCII."""
    sections = [_head(told), *_blocks(told["replicas"]), *_others(told)]
    whole = "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"
    return re.sub(r"[^\n -~]", "?", whole)  # names are a sender's: no control sequence of theirs reaches a terminal


def _head(told: Diagnosis) -> list[str]:
    fresh = told["freshness"]
    missing = dict.fromkeys(core["metric"] for one in told["replicas"] for core in one["core"] if core["state"] == "missing")
    waits = ", ".join(f"{count:,} {signal}" for signal, count in fresh["pending"].items()) or "nothing"
    newest = f"{_when(fresh['newest_event_at'])}, {_age(fresh['newest_event_age_s'])}" if fresh["newest_event_at"] else "none"
    unassembled = f"; {fresh['unassembled']:,} traces wait to be assembled" if fresh["unassembled"] else ""
    period = f"{_when(told['since'])} to {_when(told['until'])}"
    known = NOT_SERVED if told["status"] == 3 and told["requests"] else STATUS[told["status"]]
    lines = [
        f"{period}: {_counted(told['requests'])}; {known}{', '.join(missing)}",
        f"newest event {newest}; waiting to be loaded: {waits}{unassembled}",
    ]
    return [line for whole in lines for line in _wrapped(whole, "", "    ")]


def _blocks(replicas: Sequence[Diagnosis]) -> Iterator[list[str]]:
    alike: dict[str, list[Diagnosis]] = {}
    for one in replicas:
        alike.setdefault(_likeness(one), []).append(one)
    for group in alike.values():
        yield [*_replicas(group), *_core(group), *_columns(group)]


def _likeness(one: Diagnosis) -> str:
    states = [(each.get("metric", each.get("column")), each["state"], each["why"]) for each in (*one["core"], *one["columns"])]
    return str((one["dialect"], one["version"], one["stands"], one["roles"] if one["stands"] == "parts" else (), states))


def _replicas(group: Sequence[Diagnosis]) -> Iterator[str]:
    for one in group[:MOST_REPLICAS]:
        name = (
            f"{one['replica'] or '(no replica named)'}: {' '.join(filter(None, (one['dialect'] or '(no engine named)', one['version'])))}"
        )
        seen = f"last seen {_when(one['last_seen_at'])}, {_age(one['last_seen_age_s'])}"
        stands = {
            "requests": f"{_counted(one['requests'])}{_sampled(one['sampled'])}{_beside(one['unserved'])}",
            "unserved": f"{_counted(one['unserved'])} {UNSERVED}",
            "silent": "SILENT: no request in this period",
            "samples": "samples alone: no span names this replica (see `replica` of [[scrape]], or turn its spans on)",
        }.get(one["stands"]) or f"{ROLES[one['stands']]}: {one['spans']:,} spans, {', '.join(one['roles'])}"
        yield from _wrapped(f"{name}, {stands}; {seen}", "", "    ")
    if len(group) > MOST_REPLICAS:
        yield f"and {len(group) - MOST_REPLICAS} more like these (--format json has them)"


def _beside(unserved: int) -> str:
    return f", and {unserved:,} {UNSERVED}" if unserved else ""


def _sampled(sampled: Diagnosis | None) -> str:
    if sampled is None or sampled["state"] == "whole":
        return ""
    said = {
        "sampled": "totals are scaled" if sampled["weight"] is None else f"totals are scaled by {sampled['weight']:.3g}",
        "few": "too few to scale: totals are refused",
        "excess": "the counter is not of all that it serves",
    }[sampled["state"]]
    why = f"; it sends {sampled['why']}" if sampled["why"] else ""
    return f" ({100 * sampled['fraction']:.0f} % of requests send spans: {said}{why})"


def _core(group: Sequence[Diagnosis]) -> Iterator[str]:
    told: dict[str, str] = {}
    for place, core in enumerate(group[0]["core"]):
        shares = [one["core"][place]["coverage"] for one in group]
        shown = {"computed": _percent(shares), "missing": "NO", "not_applicable": "n/a"}[core["state"]]
        said = core["why"]
        if core["state"] == "computed":
            lacking = f"the rest lack {', '.join(core['lacks'])}" if core["lacks"] else ""
            said = "; ".join(filter(None, (lacking, core["unasked"])))
        elif said in told:
            said = f"as {told[said]}"
        told.setdefault(said, core["metric"])
        yield from _wrapped(f"{core['metric']:<24}{shown:<13}{said}".rstrip(), "  ", " " * 39)


def _columns(group: Sequence[Diagnosis]) -> Iterator[str]:
    """The columns by state. What a metric above asks for, or what a fleet does not do at all, is not told again."""
    core = group[0]["core"]
    skipped = {name for one in core if one["state"] == "missing" for name in one["lacks"]}
    absent = {GROUP_OF[one["metric"]] for one in core if one["state"] == "not_applicable" and one["metric"] in GROUP_OF}
    columns = [(place, one) for place, one in enumerate(group[0]["columns"]) if one["column"] not in skipped]
    complete = [one["column"] for _, one in columns if one["state"] == "complete"]
    if complete:
        yield from _wrapped(f"{'complete':<24}{', '.join(complete)}", "  ", " " * 26)
    for state in ("partial", "missing"):
        reasons: dict[str, list[str]] = {}
        for place, one in columns:
            if one["state"] == state and not (state == "missing" and one["group"] in absent):
                share = f" {_percent([each['columns'][place]['coverage'] for each in group])}" if state == "partial" else ""
                reasons.setdefault(one["why"], []).append(one["column"] + share)
        for why, names in reasons.items():
            yield from _wrapped(f"{state:<10}{', '.join(names)}: {why}", "  ", " " * 12)


def _others(told: Diagnosis) -> Iterator[list[str]]:
    yield _section("whether control may decide, by lever and pool", [_control(row) for row in told["control"]])
    unknown = [f"{row['spans']:>12,}  {row['scope'] or '(no scope)'} of {row['service'] or '(no service)'}" for row in told["unknown"]]
    yield _section("spans that no dialect reads, by scope and service", unknown)
    values = [f"{row['values']:>12,}  {row['column']}: {row['reason']}{_since(row)}" for row in told["quarantine"]]
    yield _section("impossible values, set aside", values)
    yield _section("time series that cannot be right, by replica", [_suspicion(row) for row in told["suspicions"]])
    failing = [f"{row['sender']}: {row['reason']}" for row in told["scrapes"] if row["is_failing"]]
    yield _section("scrape targets that fail", failing)
    yield _section("requests settled before their samples came: send samples no later than spans", _late(told["late_samples"]))
    yield _section("clocks", [f"{row['sender']}: {row['said']}" for row in told["senders"] if row["said"]])
    rows = sorted(told["ledger"], key=lambda row: (-row["rejected"] - row["dropped"], row["sender"], row["signal"]))
    yield _section("received = stored + duplicate + rejected + dropped + pending", [line for row in rows for line in _ledger(row)])


def _late(rows: Sequence[Diagnosis]) -> list[str]:
    """Each replica with how many requests lack which columns for that."""
    counts: dict[str, list[str]] = {}
    for row in rows:
        counts.setdefault(row["replica"], []).append(f"{_counted(row['requests'])} without {row['column']}")
    return [f"{replica}: {', '.join(told)}" for replica, told in counts.items()]


def _since(row: Diagnosis) -> str:
    return f"; since {_when(row['since'])}{', ' + row['link'] if row['link'] else ''}"


def _control(row: Diagnosis) -> str:
    decides = {"refused": "decides nothing", "unseen": "decides nothing yet", "widened_null": "decides large effects"}
    named = f"{row['lever']} {row['pool']}: {decides.get(row['permission'], 'decides')}: {row['reason']}"
    if row["intended_control_share"] is None:
        return f"{named}; its share is not checked: no [[holdouts]] states it"
    return f"{named}; split otherwise than intended in {row['segments_off']} of {row['segments']} segments"


def _suspicion(row: Diagnosis) -> str:
    became = {"quarantined": "shared-out values set aside", "suspect": "values stay, verdicts wait", "noted": "nothing is made of it"}
    named = f"{row['trap']} ({row['upstream']})" if row["upstream"] else row["trap"]
    return f"{row['replica']} {row['column']}: {row['seen']}; {named}; {became[row['severity']]}{_since(row)}"


def _ledger(row: Diagnosis) -> Iterator[str]:
    counts = " + ".join(f"{row[name]:,}" for name in ("stored", "duplicate", "rejected", "dropped", "pending"))
    reasons = [f"{each['reason']} ({each['items']:,})" for each in row["reasons"][:MOST_REASONS]]
    if len(row["reasons"]) > MOST_REASONS:
        reasons.append(f"and {len(row['reasons']) - MOST_REASONS} more reasons (--format json has them)")
    lag = [f"{row['lag_messages']:,} messages are not read yet"] if row.get("lag_messages") else []
    yield "; ".join([f"{row['sender']} {row['signal']}: {row['received']:,} = {counts}", *lag, *reasons])


def _section(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    lines = [title, *(line for row in rows[:MOST_ROWS] for line in _wrapped(row, "  ", " " * (6 if row[0] != " " else 16)))]
    return [*lines, f"  and {len(rows) - MOST_ROWS} more (--format json has them)"] if len(rows) > MOST_ROWS else lines


def _wrapped(line: str, first: str, later: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False) or [first]


def _percent(shares: Sequence[float]) -> str:
    """One share, or the range of several: 100 % is all, and not nearly all."""
    low, high = (f"{min(100 * share, 100 if share == 1 else 99.9):.3g}" for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low}-{high} %"


def _counted(requests: int) -> str:
    return f"{requests:,} request{'' if requests == 1 else 's'}"


def _when(moment: str) -> str:
    return f"{moment[:19]}Z"


def _age(age_s: float) -> str:
    for unit_s, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if age_s >= 2 * unit_s:
            return f"{age_s / unit_s:.0f} {unit} ago"
    return f"{max(age_s, 0):.0f} s ago"
