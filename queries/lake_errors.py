"""What the libraries of a lake raise in; a LakeError that says where, what came, and what helps, out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

COLORED = re.compile(r"\x1b\[[0-9;]*m")
NESTED = re.compile(r"\s*\u21b3\s*")
BACKTRACE = re.compile(r"\s+0: <?\S+>?\s+1: .*", re.DOTALL)
HELPS = {
    "NoSuchBucket": "make the bucket first, or name another in [store] uri",
    "169.254.169.254": "no key was given, and this machine has no role: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "URL scheme is not allowed": "AWS_ALLOW_HTTP = 'true' in [store.options] permits an endpoint without TLS",
    "Json error": "an entry of its _delta_log is cut off or damaged: put it back from a copy of the lake",
    "found gap": "an entry of its _delta_log is missing: put it back from a copy of the lake",
    "is not supported": "a newer writer made this table: run the version of leverwatch that wrote it, or a newer one",
}


class LakeError(RuntimeError):
    """The lake cannot be read or written: where, what came of it, and what helps."""


class BrokenFileError(LakeError):
    """A file that the lake names is not there, or is none that can be read: another try gives the same."""


@contextmanager
def told(uri: str, passed: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Whatever the lake's libraries raise, as a LakeError that says where."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except passed:
        raise
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise LakeError(said(uri, error)) from error


@contextmanager
def told_of_file(uri: str) -> Iterator[None]:
    """The same of whoever reads one file that the lake names: as a BrokenFileError where another try would give the same."""
    try:
        yield
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        msg = f"{said(uri, error)}; put it back from a copy, or take its hour out of the lake: see docs/lake-operations.md, Recovery"
        raise BrokenFileError(msg) from error
    except (OSError, pa.ArrowException) as error:
        raise LakeError(said(uri, error)) from error


def said(uri: str, error: Exception) -> str:
    """What a library says of an address, in one line without colors and frames, and what helps where that is known."""
    plain = NESTED.sub(": ", COLORED.sub("", str(error)))
    text = " ".join(BACKTRACE.sub("", plain).split())
    helps = next((help_ for part, help_ in HELPS.items() if part in text), "")
    return f"{uri}: {text}{f'; {helps}' if helps else ''}"
