"""A notice's text in, what can be checked of it out: a webhook body, its `data`, or a flip as `/api/flips` gives it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

TAKEN = "takes a webhook's body, its data, or a flip as GET /api/flips gives it, as JSON"


class UnreadableNoticeError(ValueError):
    """A text that is no notice; says what came and what is taken."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """The sums behind a notice: what was asked, when, and the hash of what came."""

    sql: str
    params: dict[str, str]
    as_of: datetime
    columns: tuple[str, ...]
    result_hash: str
    metric: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One number of a notice."""

    metric: str
    treated: float | None = None
    control: float | None = None
    gain: float | None = None
    n_treated: int = 0
    n_control: int = 0
    basis: str = "control"


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a causal chain, as far as it tells what a notice was decided on."""

    kind: str = ""
    metric: str = ""
    action: str = ""


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The causal chain of a notice."""

    disable_when: tuple[Named, ...] = ()
    expected_benefit: Named = Named()


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What a notice is checked by; `raw` is all of it, as it came."""

    lever: str
    segment: dict[str, str]
    flip_id: str = ""
    policy: str = ""
    decided_at: datetime | None = None
    reason_code: str = ""
    reason: str = ""
    evidence: tuple[Evidence, ...] | None = ()
    query: Query | None = None
    causal_chain: Chain | None = None
    raw: dict[str, Any] = {}


def notice(text: str | bytes, where: str) -> Notice:
    """The notice of a JSON text.

    Raises:
        UnreadableNoticeError: it is no JSON, of a type that carries no decision, or lacks what a notice has.
    """
    try:
        found = msgspec.json.decode(text)
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
        return msgspec.structs.replace(msgspec.convert(_data(found, where), Notice), raw=found)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        msg = f"{where}: is no notice: {error}; {TAKEN}"
        raise UnreadableNoticeError(msg) from error


def _data(found: Any, where: str) -> Any:
    """The decision within what wraps it."""
    if not isinstance(found, dict):
        msg = f"{where}: is no JSON object; {TAKEN}"
        raise UnreadableNoticeError(msg)
    if isinstance(found.get("data"), dict):
        if "lever" not in found["data"]:
            msg = f"{where}: a notice of type {found.get('type')!r} carries no decision; one of a lever is taken"
            raise UnreadableNoticeError(msg)
        return found["data"]
    return found["notice"] if isinstance(found.get("notice"), dict) else found
