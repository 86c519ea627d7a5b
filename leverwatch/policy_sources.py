"""A folder of an operator's own policies in, every policy that a server would judge by out, each with where it is from."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from alerts import policy
from alerts.chain import Policy
from leverwatch.config import ConfigError


class Source(NamedTuple):
    """A policy, its text, and where that is from: `shipped`, a file, or a file that `overrides` a shipped one."""

    policy: Policy
    text: str
    origin: str


def sources(folder: str | Path | None = None) -> list[Source]:
    """The shipped policies, overridden or joined by those of an operator's folder.

    Raises:
        ConfigError: the folder is not there.
        PolicyError: a file that cannot be used, or two of one name.
    """
    shipped = [Source(policy.parse(text, name), text, "shipped") for name, text in policy.shipped_files()]
    found = {source.policy.name: source for source in shipped}
    own: dict[str, Path] = {}
    for path in _files(folder) if folder else ():
        read = policy.load(path)
        if read.name in own:
            msg = f"{path}: a second policy named {read.name!r}, after {own[read.name]}; takes one of a name"
            raise policy.PolicyError(msg)
        own[read.name] = path
        text, overrides = path.read_text(encoding="utf-8-sig"), read.name in found
        found[read.name] = Source(read, text, f"{path}, overrides the shipped one" if overrides else str(path))
    return list(found.values())


def _files(folder: str | Path) -> list[Path]:
    path = Path(folder)
    if not path.is_dir():
        msg = f"[alerts] policies = {str(folder)!r}: no such folder; a folder of policy .toml files is taken"
        raise ConfigError(msg)
    return sorted(file for file in path.iterdir() if policy.is_policy(file.name))
