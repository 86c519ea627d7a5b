"""Which segments of levers are the same traffic: items with a lever and a segment in, those that share requests with a segment out."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

Item = TypeVar("Item")
Values = tuple[str, ...]
OTHERS = "other"  # what the segment of all that are not told apart holds: it shares requests with none that can be named


class Traffic(Generic[Item]):
    """Items by lever and segment, found by a segment whose keys do not contradict theirs; whatever their number, by a look into a table."""

    def __init__(self) -> None:
        self._items: dict[str, dict[Values, list[tuple[str, Item]]]] = {}
        self._found: dict[tuple[str, Values, Values], dict[Values, list[Item]]] = {}

    def add(self, lever: str, segment: str, item: Item) -> None:
        """Adds an item. The segment of all others is left out: nobody knows which traffic it is."""
        keys = tuple(sorted(told(segment)))
        if OTHERS in told(segment).values():
            return
        self._items.setdefault(lever, {}).setdefault(keys, []).append((segment, item))
        for (of, having, shared), found in self._found.items():
            if of == lever and having == keys:
                found.setdefault(_values(segment, shared), []).append(item)

    def of(self, levers: Iterable[str], segment: str) -> list[Item]:
        """The items of these levers on the segment's traffic, lever by lever in the order they were added."""
        mine = told(segment)
        if OTHERS in mine.values():
            return []
        found: list[Item] = []
        for lever in levers:
            for keys in self._items.get(lever, ()):
                shared = tuple(key for key in keys if key in mine)
                found += self._by(lever, keys, shared).get(_values(segment, shared), ())
        return found

    def _by(self, lever: str, keys: Values, shared: Values) -> Mapping[Values, list[Item]]:
        if (lever, keys, shared) not in self._found:
            found: dict[Values, list[Item]] = {}
            for segment, item in self._items[lever][keys]:
                found.setdefault(_values(segment, shared), []).append(item)
            self._found[lever, keys, shared] = found
        return self._found[lever, keys, shared]


@functools.lru_cache(maxsize=65_536)
def told(segment: str) -> Mapping[str, str]:
    """The keys of a segment with their values."""
    keys: dict[str, str] = json.loads(segment)
    return keys


def _values(segment: str, keys: Values) -> Values:
    return tuple(str(told(segment)[key]) for key in keys)
