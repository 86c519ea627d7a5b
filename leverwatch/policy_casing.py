"""A policy's file or the name of a shipped one in, the policy with the cases beside it out."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from alerts import policy_cases
from alerts.chain import Policy
from alerts.policy import shipped
from alerts.policy_cases import CaseError, Cases
from leverwatch.backtesting import parsed, texts

ENDS = ".cases.toml"
HOW = "write cases there as those are that `leverwatch policy show speculation-net-itl --cases` prints; docs/policies-try.md says how"


def cased(named: str) -> tuple[Policy, Cases]:
    """The policy `x.toml` and its cases `x.cases.toml`, by the path of either; of a shipped policy by its name.

    Raises:
        PolicyError: the policy cannot be used.
        CaseError: there are no cases, or they cannot be used.
    """
    stem = named.removesuffix(ENDS).removesuffix(".toml")
    is_file = Path(named).is_file() or named.endswith(".toml")
    policy = parsed(texts(f"{stem}.toml" if is_file else named))[0]
    where = f"{stem}{ENDS}" if is_file else _shipped(policy.name)
    return policy, policy_cases.parse(_text(where, is_file=is_file), where)


def cases_text(name: str, origin: str) -> str:
    """The text of the cases beside a policy, as it is listed: a shipped one, or `origin` is its file.

    Raises:
        CaseError: there are none.
    """
    if origin == "shipped":
        return _text(_shipped(name), is_file=False)
    path = origin.removesuffix(", overrides the shipped one")
    return _text(f"{path.removesuffix('.toml')}{ENDS}", is_file=True)


def _shipped(name: str) -> str:
    """The file of cases of a shipped policy: its policy's file is of the same name."""
    folder = resources.files("alerts") / "policies"
    for entry in folder.iterdir():
        if entry.name.endswith(ENDS) and f'name = "{name}"' in _beside(entry.name):
            return entry.name
    msg = f"{name}: no cases are shipped with it; of the shipped ones {', '.join(sorted(one.name for one in shipped()))} may have some"
    raise CaseError(msg)


def _beside(cases: str) -> str:
    return (resources.files("alerts") / "policies" / f"{cases.removesuffix(ENDS)}.toml").read_text(encoding="utf-8")


def _text(where: str, *, is_file: bool) -> str:
    folder = resources.files("alerts") / "policies"
    try:
        return Path(where).read_text(encoding="utf-8-sig") if is_file else (folder / where).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        msg = f"{where}: there are no cases beside the policy; {HOW}"
        raise CaseError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{where}: cannot be read: {error}; takes the cases of the policy beside it, TOML in UTF-8"
        raise CaseError(msg) from error
