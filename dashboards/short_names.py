"""Names of rows in, the same cut to a width out so that what tells them apart can still be read."""

from __future__ import annotations

from collections.abc import Sequence

ELLIPSIS = "…"


def told_apart(names: Sequence[str], most: int, between: str = " · ") -> list[str]:
    """The names, none longer than `most` characters. Where one is too long, parts are left out of all that do not tell them apart.

    What is longer even so is cut in its middle: a name's beginning and its end tell more than its middle.
    """
    split = [name.split(between) for name in names]
    parts = [[*one, *[""] * (max(map(len, split)) - len(one))] for one in split]
    left_out: set[int] = set()
    while any(len(name) > most for name in _joined(parts, left_out, between)):
        place = _needless(parts, left_out)
        if place is None:
            break
        left_out.add(place)
    return [_cut(_bare(name, between) if len(name) > most else name, most) for name in _joined(parts, left_out, between)]


def _needless(parts: Sequence[Sequence[str]], left_out: set[int]) -> int | None:
    """The place whose parts are least missed: as many names differ without it, and it has the fewest values; the first goes last."""
    distinct = len({tuple(one) for one in parts})
    if distinct < 2:
        return None
    places, found = range(len(parts[0])), []
    for place in places:
        without = left_out | {place}
        kept = {tuple(part for n, part in enumerate(one) if n not in without) for one in parts}
        if place not in left_out and len(without) < len(places) and len(kept) == distinct:
            found.append((len({one[place] for one in parts}), place == 0, place))
    return min(found)[2] if found else None


def _joined(parts: Sequence[Sequence[str]], left_out: set[int], between: str) -> list[str]:
    """The names again; an ellipsis stands for parts next to each other that are left out."""
    found = []
    for one in parts:
        kept: list[str] = []
        for place, part in enumerate(one):
            if place not in left_out:
                kept += [part] if part else []
            elif not kept or kept[-1] != ELLIPSIS:
                kept.append(ELLIPSIS)
        found.append(between.join(kept))
    return found


def _bare(name: str, between: str) -> str:
    """A name without the ellipses at its ends: they take room that its parts need."""
    return name.removeprefix(f"{ELLIPSIS}{between}").removesuffix(f"{between}{ELLIPSIS}")


def _cut(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    begins = (most - len(ELLIPSIS)) // 2
    return f"{name[:begins]}{ELLIPSIS}{name[len(name) - (most - len(ELLIPSIS) - begins) :]}"
