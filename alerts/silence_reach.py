"""A silence and a store in, what whoever asked for it ought to know out: that it is about nothing, or about what was told already."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator

from alerts.notice_types import OPENING, type_of
from alerts.silences import FlipKeys, Silence
from queries import files
from queries.store import Store

MOST_NAMED = 5


def notes(store: Store, silence: Silence) -> list[str]:
    """Sentences on a silence that was taken; none where it is about something that nobody was told of yet."""
    return [*_about_nothing(store, silence), *_told_already(store, silence)]


def _about_nothing(store: Store, silence: Silence) -> Iterator[str]:
    if silence.flip_id is not None:
        return
    rows = store.rows(files.question("silence_streams"))
    receiver = silence.receiver or ""
    if any(silence.matches(FlipKeys("", row["policy"], row["lever"], json.loads(row["segment"])), receiver) for row in rows):
        return
    yield "it is about nothing so far: no policy, lever and segment like that stands or was ever judged"
    if silence.policy is not None:
        yield from _near("policy", silence.policy, (row["policy"] for row in rows))
    segments = [json.loads(row["segment"]) for row in rows]
    for key, word in (silence.segment or {}).items():
        yield from _near(key, word, (str(one[key]) for one in segments if key in one))


def _near(what: str, word: str, known: Iterable[str]) -> Iterator[str]:
    """The names like one that nothing has; nothing where there is such a name, or a pattern was asked for."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1)
    if close and word not in names and "*" not in word and "?" not in word:
        yield f"{what} {word!r}: did you mean {close[0]!r}?"


def _told_already(store: Store, silence: Silence) -> Iterator[str]:
    """Recommendations that stand and got through before the silence began."""
    told: dict[str, list[str]] = {}
    for row in store.rows(files.question("silence_told")):
        keys = FlipKeys(row["flip_id"], row["policy"], row["lever"], json.loads(row["segment"]))
        if type_of(row["state_after"], row["action"]) in OPENING and silence.matches(keys, row["receiver"]):
            told.setdefault(row["flip_id"], []).append(row["receiver"])
    if not told:
        return
    named = ", ".join(f"{flip_id[:8]} to {' and '.join(receivers)}" for flip_id, receivers in list(told.items())[:MOST_NAMED])
    more = f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else ""
    what = "1 recommendation that stands was" if len(told) == 1 else f"{len(told)} recommendations that stand were"
    yield f"{what} told already ({named}{more}): that cannot be taken back, and that it is over will be told all the same"
