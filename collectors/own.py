"""An export in, the same without what a Leverwatch tells of itself out: that is no traffic, and must not feed what it tells of.

Spans of a Leverwatch may come through a Collector that sends everything here. They are left out at the door, before anything is stored.
"""

from __future__ import annotations

SERVICE = "leverwatch"
REASON = "Leverwatch's own telemetry"
SIGNALS = ("traces", "metrics", "logs")
_FIELD_ONE = 0x0A  # a field of number 1 with a length: a resource's group in an export, the resource in its group
_NAMED = b"\x0a\x0cservice.name\x12\x0c\x0a\x0aleverwatch"  # the attribute `service.name`, as every serializer writes it


def cut(body: bytes) -> tuple[bytes, bytes]:
    """An export without the groups of our own service, and these groups, as an export too; empty where there are none.

    Looks at the resources alone: microseconds, whatever hangs on them. To be called with sound bytes; of others nothing is cut.
    """
    groups = _groups(body)
    ours = [span for span in groups if _NAMED in _resource(body, *span)]
    if not ours:
        return body, b""
    starts = {start for _, start, _ in ours}
    kept = b"".join(body[head:end] for head, start, end in groups if start not in starts)
    return kept, b"".join(body[head:end] for head, _, end in ours)


def _groups(body: bytes) -> list[tuple[int, int, int]]:
    """Where each group of an export begins, with its length and behind it, and where it ends; none where the export is of another form."""
    found, at = [], 0
    while at < len(body):
        if body[at] != _FIELD_ONE:
            return []
        length, start = _varint(body, at + 1)
        found.append((at, start, start + length))
        at = start + length
    return found if at == len(body) else []


def _resource(body: bytes, _: int, start: int, end: int) -> bytes:
    """The resource of a group, which stands first in it; empty where it has none there."""
    if start >= end or body[start] != _FIELD_ONE:
        return b""
    length, first = _varint(body, start + 1)
    return body[first : min(first + length, end)]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """A number of protobuf, and where it ends."""
    value = shift = 0
    for place in range(at, min(at + 10, len(body))):
        value |= (body[place] & 0x7F) << shift
        shift += 7
        if body[place] < 0x80:
            return value, place + 1
    return 1 << 62, at  # it does not end: no group can be as long
