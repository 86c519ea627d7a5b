"""`python -m collectors.warm`: compiles the decoder's kernels, so that no server has to wait for it."""

from __future__ import annotations

import numpy as np

from collectors import columns, decode, rows, wire_layout
from collectors.seen import Seen


def warm() -> None:
    """Runs every kernel once; the compiled code is cached beside the modules where that folder can be written."""
    decode.scan([b""])
    columns.hex_ids(np.zeros(16, np.uint8), np.zeros(1, np.int64), 16)
    rows.told_apart(np.zeros(24, np.uint8), np.zeros((1, wire_layout.SPAN_COLUMNS), np.int64))
    seen = Seen()
    seen.note(np.zeros(1, np.int64), np.zeros(1, np.uint64))
    seen.maybe(np.zeros(1, np.int64), np.zeros(1, np.uint64))


if __name__ == "__main__":
    warm()
