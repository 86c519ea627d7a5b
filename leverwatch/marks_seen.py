"""Rows of what requests state of levers and arms in, the marks that nothing reads out, per replica and engine."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from collectors.dialect_parts import Deployment

Key = tuple[str | None, str | None]
KINDS = ("levers", "arms")


@dataclass(slots=True)
class OddMarks:
    """Per column, `levers` and `arms`: how many requests carry a mark that nothing reads, and each such mark in words."""

    requests: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    said: dict[str, dict[str, None]] = field(default_factory=lambda: {kind: {} for kind in KINDS})

    def why(self, column: str) -> str:
        """The odd marks of a column as one sentence; empty where there are none."""
        return "; ".join(self.said.get(column, ()))


def odd_marks(rows: Iterable[Mapping[str, Any]], facts: Deployment) -> dict[Key, OddMarks]:
    """Per replica and engine, from rows of `doctor_marks`, what is misspelled or unknown; only those with such marks."""
    found: dict[Key, OddMarks] = {}
    for row in rows:
        for column in KINDS:
            odd = list(dict.fromkeys(_odd(column, row[column] or {}, facts)))
            if odd:
                of = found.setdefault((row["replica"], row["engine"]), OddMarks())
                of.requests[column] += row["requests"]
                of.said[column].update(dict.fromkeys(odd))
    return found


def _odd(column: str, stated: Mapping[str, str | None], facts: Deployment) -> Iterable[str]:
    prefix = facts.prefixes.arms if column == "arms" else facts.prefixes.levers
    for name, value in stated.items():
        if name not in facts.marks.levers:
            yield f"{prefix}{name}: no lever of this name is known{_nearest(name, facts.marks.levers)}"
        elif column == "arms" and value not in facts.marks.arms:
            meant = _nearest(str(value), facts.marks.arms) or ";"
            yield f"{prefix}{name} = {value!r} is no arm{meant} taken: {', '.join(facts.marks.arms)}"


def _nearest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""
