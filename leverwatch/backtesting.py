"""A store and the texts of policies in, what they would have said of its history out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from alerts import policy
from alerts.backtest import backtest
from alerts.backtest_told import Backtest
from alerts.chain import Policy, PolicyError
from queries.report import ReportError, moment
from queries.store import Store

MOST_POLICIES = 200


class PolicyText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy as its file has it, and where that lies."""

    where: str
    text: str


def texts(named: str | Path | Iterable[str | Path]) -> list[PolicyText]:
    """The texts of policies: of files, or of shipped ones by their names.

    Raises:
        PolicyError: a file cannot be read, or there is neither a file nor a shipped policy of that name.
    """
    listed = [named] if isinstance(named, str | Path) else list(named)
    return [_text(one) for one in listed]


def parsed(given: Sequence[PolicyText]) -> list[Policy]:
    """The policies of texts.

    Raises:
        PolicyError: one cannot be used, two have the same name, or there are none, or too many.
    """
    if not 1 <= len(given) <= MOST_POLICIES:
        msg = f"{len(given)} policies: 1 to {MOST_POLICIES} are taken"
        raise PolicyError(msg)
    found: dict[str, Policy] = {}
    for one in given:
        read = policy.parse(one.text, one.where)
        if read.name in found:
            msg = f"{one.where}: a second policy named {read.name!r}; take them one by one, or rename one"
            raise PolicyError(msg)
        found[read.name] = read
    return list(found.values())


def tried(store: Store, given: Sequence[PolicyText], since: str | datetime | None, until: str | datetime | None, now: datetime) -> Backtest:
    """What policies say of a period, all of history where none is given. An age such as `7d` counts back from the newest effect.

    Raises:
        PolicyError: as `parsed`.
        ReportError: a time cannot be read, or the period is empty.
    """
    policies = parsed(given)
    ends = [_moment(store, when, now) for when in (since, until)]
    if ends[0] and ends[1] and ends[0] >= ends[1]:
        msg = f"since {ends[0].isoformat()} is not before until {ends[1].isoformat()}"
        raise ReportError(msg)
    return backtest(store, policies, *ends)


def _text(named: str | Path) -> PolicyText:
    path = Path(named)
    if not path.is_file() and isinstance(named, str) and path.name == named and not path.suffix:
        try:
            return PolicyText(named, policy.shipped_text(named))
        except KeyError as error:
            msg = f"{named}: is no file, and {error.args[0]}"
            raise PolicyError(msg) from error
    try:
        return PolicyText(str(named), path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{named}: cannot be read: {error}; takes a policy's TOML file, or the name of a shipped one"
        raise PolicyError(msg) from error


def _moment(store: Store, when: str | datetime | None, now: datetime) -> datetime | None:
    if not isinstance(when, str):
        return when
    newest = store.rows("select max(until) as newest from effects")[0]["newest"]
    return moment(when, newest or now)
