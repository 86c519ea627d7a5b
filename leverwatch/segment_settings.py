"""`[segments]` of the configuration in, the edges of buckets and the bound on judging segments out."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import msgspec

from leverwatch.described import says
from pipeline.segments import BATCH_EDGES, INPUT_EDGES_TOKENS, LIMIT_SEGMENTS, OUTPUT_EDGES_TOKENS, TEMPERATURE_EDGES, Edges


class Segments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the buckets of requests begin and end, and which segments are judged. New edges hold for requests that come from then on."""

    input_edges: Annotated[tuple[int, ...], says("edges of `input_bucket`, in prompt tokens")] = INPUT_EDGES_TOKENS
    output_edges: Annotated[tuple[int, ...], says("edges of `output_bucket`, in output tokens")] = OUTPUT_EDGES_TOKENS
    batch_edges: Annotated[tuple[int, ...], says("edges of `batch_bucket`, in requests")] = BATCH_EDGES
    temperature_edges: Annotated[tuple[float, ...], says("edges of `temperature_bucket`")] = TEMPERATURE_EDGES
    concurrency_edges: Annotated[tuple[int, ...], says("edges of `concurrency_bucket`, in requests")] = BATCH_EDGES
    judge_by_tenant: Annotated[bool, says("judge each tenant apart: `tenant` is then a key of judging segments")] = False
    limit: Annotated[int, says("the most judging segments that are told apart; those that come later are one, `other`")] = LIMIT_SEGMENTS

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, tuple) and (not value or any(low >= high for low, high in pairwise(value))):
                msg = f"{name} = {list(value)}: one or more numbers are taken, each larger than the one before"
                raise ValueError(msg)
        if self.limit < 1:
            msg = f"limit = {self.limit}: 1 or more segments are taken"
            raise ValueError(msg)

    def edges(self) -> Edges:
        """The same as the pipeline takes it."""
        return Edges(self.input_edges, self.output_edges, self.batch_edges, self.concurrency_edges, self.temperature_edges, self.limit)
