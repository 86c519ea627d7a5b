"""What cannot be loaded in, a file of its own out: kept with its reason for whoever looks, and in nobody's way.

The bodies may hold prompts: the folder is for its owner alone. How long they stay is a matter of retention.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

FOLDER = "set_aside"


def keep(folder: Path, name: str, content: bytes, about: dict[str, str | int]) -> Path:
    """Writes `content` as `<name>.body` in the data folder's `set_aside`, and what is known of it as `<name>.json`; gives the body's path.

    The same name again is the same thing again: it is written over.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    place = folder / FOLDER
    place.mkdir(mode=0o700, exist_ok=True)
    body = place / f"{name}.body"
    for path, written in ((body, content), (place / f"{name}.json", json.dumps(about, indent=1).encode())):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
    return body
