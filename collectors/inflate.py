"""The pieces of a request's body in, the whole body out: plain, gzip or zstd, never more than the bound while it is inflated."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

import pyarrow as pa

ENCODINGS = ("gzip", "zstd", "identity")
PIECE_BYTES = 1 << 20


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
    inflate = zlib.decompressobj(wbits=31)
    taken, size = [], 0
    try:
        async for piece in pieces:
            plain = inflate.decompress(piece, limit_bytes + 1 - size)
            size += len(plain)
            if size > limit_bytes or inflate.unconsumed_tail:
                raise _too_large(limit_bytes)
            taken.append(plain)
    except zlib.error as error:
        raise BrokenBodyError(str(error)) from error
    if not inflate.eof or inflate.unused_data:
        msg = "bytes follow the end of the gzip body" if inflate.eof else "the gzip body is cut short"
        raise BrokenBodyError(msg)
    return b"".join(taken)


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
    return TooLargeError(f"the body is larger than {limit_bytes} bytes")
