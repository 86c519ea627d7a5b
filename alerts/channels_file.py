"""A file that notices are appended to: letters in, lines of JSON on disk out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from alerts import canonical
from alerts.channels import DeliveryError, Letter, Route, Sent


def send(route: Route, letters: Sequence[Letter], now: datetime) -> Sent:  # noqa: ARG001
    """Appends a line for each letter, its webhook's body and `webhook_id`, and waits until it is on disk.

    Raises:
        DeliveryError: the file cannot be written.
    """
    lines = [canonical.text({"webhook_id": letter.webhook_id, **json.loads(letter.text)}) + "\n" for letter in letters]
    file = Path(route.receiver.file or "")
    try:
        _append(file, "".join(lines).encode())
    except OSError as error:
        msg = f"{file}: {error.strerror}"
        raise DeliveryError(msg, permanent=False) from error
    return Sent()


def _append(file: Path, text: bytes) -> None:
    is_new = not file.exists()
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            text = b"\n" + text  # a line that a crash or a full disk cut off does not swallow the next
        while text:
            text = text[os.write(descriptor, text) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        _sync_folder(file.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
