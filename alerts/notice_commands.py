"""A policy, its action and the engines that serve a segment in; what each engine takes, and how to silence and check a notice, out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence

from alerts.chain import Policy
from alerts.levers import Action

NO_COMMAND: tuple[Action, ...] = ("keep", "hold", "widen")
SILENT_FOR = "8h"
_ADVISED = re.compile(r"(?:^|; )[Aa]dvised to ([a-z ]+): ")
_ENABLING = (
    "Take one replica of the segment out of rotation and drain it.",
    "Undo on it what was changed when the lever was switched off, and put it back with {arm} = treated.",
    "Compare it with the others for {minutes} minutes, then do the others; keep one with {arm} = control, so that harm can be seen.",
)


def commands(policy: Policy, action: Action, engines: Sequence[str]) -> tuple[list[dict[str, str]], str | None]:
    """The commands of the engines that serve, and what is to be said of that choice; of all engines where that tells nothing."""
    every = list(_every(policy, action))
    mine = [row for row in every if row["engine"] in engines]
    if not every:
        return [], None
    if mine:
        return mine, f"of what serves the segment: {', '.join(row['engine'] for row in mine)}"
    known = f"the policy has none for {', '.join(engines)}, which serves the segment" if engines else "which engine serves is not known"
    return every, f"{known}: those of all engines"


def steps(policy: Policy, action: Action) -> list[str]:
    """What to do for an action, in order: of the policy's steps what is said of this action, or of each; for `enable` the way back on."""
    if action == "enable":
        return [step.format(arm=f"leverwatch.arm.{policy.lever}", minutes=f"{policy.dwell_s / 60:.0f}") for step in _ENABLING]
    if action in NO_COMMAND:
        return []
    whole, words = list(policy.rollback.steps), action.replace("_", " ")
    if not any(_is(word, words) for step in whole for word in _ADVISED.findall(step)):
        return whole
    return [told for step in whole if (told := _of_action(step, words))]


def how_to(policy: Policy, segment: str, flip_id: str, base_url: str) -> dict[str, str]:
    """Command lines to be pasted into a shell: `silence` holds back this stream's notices, `verify` re-runs the sums behind this one."""
    server = f" --url {shlex.quote(base_url)}" if base_url else ""
    keys = "".join(f" --segment {shlex.quote(f'{key}={value}')}" for key, value in json.loads(segment).items())
    address = shlex.quote(f"{base_url}/api/flips?flip_id={flip_id}")
    verify = f"curl -s {address} | leverwatch verify -{server}" if base_url else "leverwatch verify NOTICE.json"
    silence = f"leverwatch silence add --lever {shlex.quote(policy.lever)} --policy {shlex.quote(policy.name)}"
    return {"silence": f"{silence}{keys} --for {SILENT_FOR}{server}", "verify": verify}


def _of_action(step: str, action: str) -> str:
    """A step as this action takes it: `Advised to shorten: ...; advised to disable: ...` is one of both; empty where it is for others."""
    _, *parts = _ADVISED.split(step)
    if not parts:
        return step
    told = next((text for word, text in zip(parts[::2], parts[1::2], strict=True) if _is(word, action)), "")
    return told[:1].upper() + told[1:].rstrip(".") + "." if told else ""


def _every(policy: Policy, action: Action) -> Iterator[dict[str, str]]:
    """What each engine takes for an action: of several texts the one that begins with it; for `enable` what is to be undone."""
    for engine, text in sorted(policy.rollback.engine.items()):
        texts = (text,) if isinstance(text, str) else text
        if action == "enable":
            yield {"engine": engine, "text": f"undo: {'; '.join(texts)}"}
        elif action not in NO_COMMAND:
            mine = [one.removeprefix(f"{action}: ") for one in texts if one.startswith(f"{action}: ")]
            yield {"engine": engine, "text": "; ".join(mine or texts)}


def _is(word: str, action: str) -> bool:
    """Whether a step's word names an action: `lower` is `lower threshold`."""
    return action == word or action.startswith(f"{word} ")
