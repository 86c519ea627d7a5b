"""Names of rows in, the same cut to a width out so that what tells them apart can still be read."""

from __future__ import annotations

from collections.abc import Sequence

ELLIPSIS = "…"


def told_apart(names: Sequence[str], most: int, between: str = " · ") -> list[str]:
    """The names, none longer than `most` characters. Where one is too long, what all of them share at a place is left out of each.

    What is longer even so is cut in its middle: a name's beginning and its end tell more than its middle.
    """
    if all(len(name) <= most for name in names):
        return list(names)
    parts = [name.split(between) for name in names]
    shared = _shared(parts)
    shortened = [_without(one, shared, between) if max(map(len, parts)) > 1 else between.join(one) for one in parts]
    return [_cut(name, most) for name in shortened]


def _shared(parts: Sequence[Sequence[str]]) -> set[str]:
    """The parts that every name has; none where there is one name alone, or the names are the same."""
    distinct = {tuple(one) for one in parts}
    if len(distinct) < 2:
        return set()
    return set.intersection(*(set(one) for one in distinct))


def _without(parts: Sequence[str], shared: set[str], between: str) -> str:
    kept = [part for part in parts if part not in shared]
    if not kept:
        return between.join(parts)
    return (f"{ELLIPSIS} " if len(kept) < len(parts) else "") + between.join(kept)


def _cut(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    begins = (most - len(ELLIPSIS)) // 2
    return f"{name[:begins]}{ELLIPSIS}{name[len(name) - (most - len(ELLIPSIS) - begins) :]}"
