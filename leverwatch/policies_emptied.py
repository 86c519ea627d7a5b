"""An operator's folder of policies in, a refusal out where it is empty and policies that judged would be gone: it may not be mounted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from alerts import streams
from alerts.chain import Policy
from alerts.policy import is_policy
from leverwatch.config import ConfigError
from queries.store import Store

MOST_NAMED = 3


def check(store: Store, folder: str | None, policies: Sequence[Policy]) -> None:
    """Passes a folder with a policy in it, and an empty one that takes nothing away: what removed policies recommend would be ended.

    Raises:
        ConfigError: the folder is empty, and policies that judged are not loaded any more.
    """
    if not folder or any(is_policy(file.name) for file in Path(folder).iterdir()):
        return
    gone = sorted({policy for policy, _ in streams.newest(store)} - {policy.name for policy in policies})
    if gone:
        named = ", ".join(gone[:MOST_NAMED]) + (f" and {len(gone) - MOST_NAMED} more" if len(gone) > MOST_NAMED else "")
        msg = f"[alerts] policies = {folder!r}: no policy is in it, and {named} judged before"
        msg += "; takes the files again, or no such key, which ends what they recommend"
        raise ConfigError(msg)
