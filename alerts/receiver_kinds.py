"""What a receiver of each kind takes: the kind's name in, the keys that it needs and may have out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SECRETS = {name: (name, f"{name}_file", f"{name}_env") for name in ("secret", "secret_old", "password", "url")}
"""Where each secret may stand: in the configuration, in a file, in an environment variable."""
_GROUPED = ("group_wait_s", "group_by")


class ReceiverKind(NamedTuple):
    """The keys of a kind: those it needs, its secrets and whether it needs them, and what else it takes."""

    needs: tuple[str, ...] = ()
    secrets: Mapping[str, bool] = {}
    takes: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.needs, *(source for secret in self.secrets for source in SECRETS[secret]), *self.takes)


KINDS: Mapping[str, ReceiverKind] = {
    "webhook": ReceiverKind(("url",), {"secret": True, "secret_old": False}, ("format",)),
    "alertmanager": ReceiverKind(("url",), {"password": False}, ("username",)),
    "chat": ReceiverKind((), {"url": True}, _GROUPED),
    "email": ReceiverKind(("host", "sender", "to"), {"password": False}, ("username", "port", "security", *_GROUPED)),
    "file": ReceiverKind(("file",)),
}
WEBHOOK_V4 = ReceiverKind(("url",), {"secret": False, "secret_old": False}, ("format",))
"""A webhook in Alertmanager's format: what reads that verifies no signature, so it may go without one."""
