"""The pieces of a request's body in, the whole body out: plain, gzip or zstd, never more than the bound while it is inflated."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

import pyarrow as pa

ENCODINGS = ("gzip", "zstd", "identity")
PIECE_BYTES = 1 << 20
LIMIT_MEMBERS = 4096  # of a gzip body: an empty one takes 20 bytes, and the rest of a piece is copied for each


class TooLargeError(ValueError):
    """A body beyond the bound, as sent or as inflated."""


class BrokenBodyError(ValueError):
    """A body that is not in the encoding that it states, or is cut short."""


async def whole(pieces: AsyncIterator[bytes], encoding: str, limit_bytes: int) -> bytes:
    """The body in full.

    Raises:
        TooLargeError, BrokenBodyError: it cannot be taken.
    """
    if encoding == "gzip":
        return await _gzip(pieces, limit_bytes)
    taken, size = [], 0
    async for piece in pieces:
        size += len(piece)
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        taken.append(piece)
    body = b"".join(taken)
    return await asyncio.to_thread(_zstd, body, limit_bytes) if encoding == "zstd" else body


async def _gzip(pieces: AsyncIterator[bytes], limit_bytes: int) -> bytes:
    members = _Members(limit_bytes)
    try:
        async for piece in pieces:
            members.take(piece)
    except zlib.error as error:
        raise BrokenBodyError(str(error)) from error
    return members.whole()


class _Members:
    """A gzip body, which is one member after the other; at least one, and the last is whole."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes, self._size, self._count = limit_bytes, 0, 1
        self._inflate = zlib.decompressobj(wbits=31)
        self._taken: list[bytes] = []

    def take(self, piece: bytes) -> None:
        while piece:
            if self._inflate.eof:
                self._next()
            plain = self._inflate.decompress(piece, self._limit_bytes + 1 - self._size)
            self._size += len(plain)
            if self._size > self._limit_bytes or self._inflate.unconsumed_tail:
                raise _too_large(self._limit_bytes)
            self._taken.append(plain)
            piece = self._inflate.unused_data

    def _next(self) -> None:
        self._count += 1
        if self._count > LIMIT_MEMBERS:
            msg = f"the gzip body has more than {LIMIT_MEMBERS} members"
            raise BrokenBodyError(msg)
        self._inflate = zlib.decompressobj(wbits=31)

    def whole(self) -> bytes:
        if not self._inflate.eof:
            msg = "the gzip body is cut short"
            raise BrokenBodyError(msg)
        return b"".join(self._taken)


def _zstd(body: bytes, limit_bytes: int) -> bytes:
    if not body:
        msg = "the zstd body is cut short"
        raise BrokenBodyError(msg)
    taken, size = [], 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(body), "zstd") as stream:
            while plain := stream.read(min(PIECE_BYTES, limit_bytes + 1 - size)):
                size += len(plain)
                if size > limit_bytes:
                    raise _too_large(limit_bytes)
                taken.append(plain)
    except OSError as error:
        msg = f"not a whole zstd body: {error}"
        raise BrokenBodyError(msg) from error
    return b"".join(taken)


def _too_large(limit_bytes: int) -> TooLargeError:
    return TooLargeError(f"the body is larger than {limit_bytes:,} bytes")
