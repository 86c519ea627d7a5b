"""Dialect files in, the table of what is read from each sender out (`README.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collectors.dialect_parts import Dialect

START = "<!-- The table is made from `collectors/engines/*.toml` by `make golden`. -->"
END = "<!-- Its end. -->"
NEVER, SOMETIMES, ALWAYS = TICKS = ("", "(✓)", "✓")
NOT_ON_THE_SPAN = "not on the span"  # the name is read where somebody adds it, such as a Collector
# A column says yes where any of its signals is read.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "model": ("model",),
    "tokens in, out": ("prompt_tokens", "output_tokens"),
    "cached tokens": ("cached_tokens",),
    "first token": ("ttft_s",),
    "queue": ("queue_s",),
    "prefill, decode": ("prefill_s", "decode_s"),
    "drafts": ("draft_tokens", "accepted_tokens", "verify_steps"),
    "KV transfer": ("kv_transfer_s", "kv_transfer_bytes"),
    "finish, outcome": ("finish_reason", "outcome"),
}


def table(known: tuple[Dialect, ...]) -> str:
    """Markdown: one row per sender, a tick for each kind of number that its spans or records carry; in brackets, if not always."""
    ordered = sorted(known, key=lambda dialect: (dialect.title.lower(), dialect.dialect))
    rows = [("sender", *COLUMNS), ("---", *(":-:" for _ in COLUMNS)), *map(_row, ordered)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def replaced(page: str, known: tuple[Dialect, ...]) -> str:
    """A page with the table between its marks made anew. Raises ValueError where a mark is missing."""
    head, start, rest = page.partition(START)
    _, end, tail = rest.partition(END)
    if not (start and end):
        msg = f"the marks {START} and {END} are not on the page"
        raise ValueError(msg)
    return f"{head}{START}\n\n{table(known)}\n\n{END}{tail}"


def _row(dialect: Dialect) -> tuple[str, ...]:
    ticks = {signal: _tick(dialect, signal) for signal in _read(dialect)}
    best = (max((ticks.get(signal, "") for signal in signals), key=TICKS.index) for signals in COLUMNS.values())
    return (dialect.title or dialect.dialect, *best)


def _tick(dialect: Dialect, signal: str) -> str:
    """What stands for a signal that the dialect reads: where it also says why it may lack, under which conditions it comes."""
    why = dialect.cannot.get(signal)
    return ALWAYS if why is None else NEVER if why.startswith(NOT_ON_THE_SPAN) else SOMETIMES


def _read(dialect: Dialect) -> Iterator[str]:
    yield from dialect.signals
    yield from (event.signal for event in dialect.events)
    yield from (rule.gives for rule in dialect.spans if rule.gives)
