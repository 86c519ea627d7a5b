"""Dialect files in, the page that tells people what is read of each engine out (`docs/engines.md`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collectors.dialect_parts import Deployment, Dialect, EventRule, Source, SpanRule, Where

HEAD = """# Engines, gateways and clients

Made from `collectors/engines/*.toml` by `make golden`; change those, not this page. A span is told by its scope, then its name, then
attributes and version; the attribute `leverwatch.dialect`, on a span or its resource, overrules that. Numbers may arrive as texts. What
is not listed is not read. Values are stored in seconds, bytes, tokens and ratios of 0 to 1.

Roles: an *engine* span is a request, or one leg of it; *gateway*, *client*, *body* and *log* tell more of the same request, or stand for
it where no engine speaks; a *stage* is a part of it; a *duplicate* is another rank's copy; *housekeeping* belongs to no request.
"""
TAKES = {"count": "how many there are", "offset": "seconds from the span's start to the first"}


def page(known: tuple[Dialect, ...], facts: Deployment) -> str:
    """The whole page as Markdown."""
    ordered = sorted(known, key=lambda dialect: (dialect.title.lower(), dialect.dialect))
    sections = [HEAD, *("\n".join(_section(dialect)) for dialect in ordered), "\n".join(_deployment(facts))]
    return "\n".join(section.rstrip("\n") + "\n" for section in sections)


def _section(dialect: Dialect) -> Iterator[str]:
    yield f"## {dialect.title or dialect.dialect}"
    yield ""
    yield f"Dialect `{dialect.dialect}`" + (f", stored as `{dialect.speaks_for}`" if dialect.speaks_for else "") + "."
    yield f"Versions: {dialect.versions}." if dialect.versions else "Versions: any."
    yield f"Told by: {'; or '.join(_told(dialect))}."
    yield f"Sends: {dialect.sampling}." if dialect.sampling else ""
    yield ""
    yield from _table(("spans, the first that fits", "role", "leg", "gives"), [_rule(rule) for rule in dialect.spans])
    read = [_signal(signal, sources) for signal, sources in dialect.signals.items()]
    read += [(f"`{event.signal}`", *_event(event)) for event in dialect.events]
    yield from _table(("signal", "read from", "unit"), read)
    if dialect.outcomes:
        words = "; ".join(f"{ours}: {', '.join(w for w, o in dialect.outcomes.items() if o == ours)}" for ours in _distinct(dialect))
        yield f"Outcomes: {words}; any other word is `unknown`."
        yield ""
    yield from _table(("missing", "why, and what brings it"), [(f"`{signal}`", why) for signal, why in dialect.cannot.items()])
    yield from _table(
        ("missing where several answers were asked for", "why"), [(f"`{signal}`", why) for signal, why in dialect.of_one.items()]
    )


def _deployment(facts: Deployment) -> Iterator[str]:
    yield "## Facts of the deployment"
    yield ""
    yield "Read from every span, whatever its dialect: the span's attribute first, then the resource's."
    yield ""
    read = [_signal(signal, sources) for signal, sources in facts.signals.items()]
    yield from _table(("signal", "read from", "unit"), read)
    yield f"A replica is named by the first of {_listed(facts.replica.keys)}, else by its sender's address."
    yield ""
    yield from _table(("missing", "what brings it"), [(f"`{signal}`", why) for signal, why in facts.cannot.items()])


def _told(dialect: Dialect) -> Iterator[str]:
    yield _speakers(dialect.scopes, dialect.has, ())
    yield from (_speakers(also.scopes, also.has, also.where) for also in dialect.also)


def _speakers(scopes: tuple[str, ...], has: tuple[str, ...], where: tuple[Where, ...]) -> str:
    told = "any scope" if scopes == ("*",) else f"scope {_listed(scopes)}"
    told += f" with {_listed(has)}" if has else ""
    return told + "".join(f" where {_condition(condition)}" for condition in where)


def _rule(rule: SpanRule) -> tuple[str, str, str, str]:
    named = (
        f"name matches `{_cell(rule.pattern)}`"
        if rule.pattern
        else _listed(rule.names)
        if rule.names != ("*",)
        else "any"
        if rule.conditions() or rule.kind
        else "any other"
    )
    named += f" of kind {rule.kind}" if rule.kind else ""
    named += f" of scope {_listed(rule.scopes)}" if rule.scopes else ""
    conditions = " and ".join(_condition(condition) for condition in rule.conditions())
    gives = f"its length is `{rule.gives}`" if rule.gives else ""
    return named + (f" where {conditions}" if conditions else ""), rule.role, rule.phase, gives


def _condition(condition: Where) -> str:
    return f"{'resource ' if condition.of == 'resource' else ''}`{condition.key}` matches `{_cell(condition.pattern)}`"


def _signal(signal: str, sources: tuple[Source, ...]) -> tuple[str, str, str]:
    units = list(dict.fromkeys(source.unit for source in sources))
    return f"`{signal}`", "; else ".join(map(_source, sources)), ", ".join(units)


def _source(source: Source) -> str:
    told = f"{'resource ' if source.of == 'resource' else ''}`{source.key}`"
    told += f", the part `{_cell(source.pattern)}`" if source.pattern else ""
    told += f" from {source.since}" if source.since else ""
    told += f" before {source.until}" if source.until else ""
    told += f" ({source.missing:g} is none)" if source.missing is not None else ""
    return told + (f" ({source.absent:g} where it is absent beside `{source.beside}`)" if source.absent is not None else "")


def _event(event: EventRule) -> tuple[str, str]:
    names = f"event {_listed(event.names)}" + (f" where {_condition(event.where)}" if event.where else "")
    if event.take == "first":
        return f"{names}: `{event.key}` of the first", event.unit
    if event.take == "between":
        return f"{names}: seconds to {_listed(event.until)}", "s"
    return f"{names}: {TAKES[event.take]}", "count" if event.take == "count" else "s"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """A Markdown table without the columns that no row fills; nothing where there are no rows."""
    if not rows:
        return
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    for row in (head, tuple("---" for _ in head), *rows):
        yield "| " + " | ".join(row[place] for place in kept) + " |"
    yield ""


def _distinct(dialect: Dialect) -> list[str]:
    return list(dict.fromkeys(dialect.outcomes.values()))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{_cell(name)}`" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
