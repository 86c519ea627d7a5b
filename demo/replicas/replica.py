"""A serving replica, advanced from event to event: sequences in, their first tokens and their ends out.

Between two events every running sequence gets a step an iteration, and a prompt is read beside them, chunk by chunk, or several that fit in
one chunk together. So time is counted in iterations, whose length the roofline gives anew whenever what runs changes or contexts have
grown; nothing is done token by token.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Literal, NamedTuple

from demo.records import Deployment
from demo.replicas.batch import NEARLY, Batch
from demo.replicas.kv_cache import KvCache
from demo.replicas.roofline import Cost, Roofline, Work
from demo.replicas.sequence import Sequence
from demo.replicas.serving import Serving

MAX_DRAFT_TOKENS = 16
SPARE = 0.01
"""The share of the cache that stays free for running answers when another sequence begins."""
GROWN = 1 / 8
"""By so much of themselves contexts grow before an iteration's length is looked at again."""


class Happened(NamedTuple):
    """A sequence whose prompt was read, or whose last token is out."""

    what: Literal["prefilled", "ended"]
    sequence: Sequence


class Replica:
    """One worker, at moments that never go back; its counts are of what it did since it began."""

    def __init__(self, deployment: Deployment, roofline: Roofline, serving: Serving) -> None:
        self.at_s = -math.inf
        self.iterations = self.busy_s = self.collective_s = self.collective_tokens = 0.0
        self.prompt_tokens = self.cached_tokens = self.preemptions = self.transferring = 0
        self.output_tokens = self.verify_steps = 0
        self.accepted = [0] * MAX_DRAFT_TOKENS
        self.load = 0
        """The sequences that it has, those whose prompt moves elsewhere not among them."""
        self.waiting: deque[Sequence] = deque()
        self.arriving: deque[Sequence] = deque()
        self.reading: list[Sequence] = []
        self.slowness = 1.0
        self._batch = Batch()
        self._read_until = math.inf
        self._chunk = self._chunk_context = self._read_context = 0.0
        self._cost = Cost(0.0, 0.0, 0.0)
        self._iteration_s = self._next_s = self._next_iteration = math.inf
        self._is_planned = False
        self.kv = KvCache(0)
        self._drafts = roofline
        self.configure(deployment, roofline, serving)

    def configure(self, deployment: Deployment, roofline: Roofline, serving: Serving, *, restart: bool = False) -> None:
        """Serves from now on as stated; what runs goes on at the new speed, and drafts as it did. A restart forgets what is cached and
        idle."""
        self.deployment, self.roofline, self.serving = deployment, roofline, serving
        if restart:
            self.kv.forget()
        self.kv.resize(roofline.kv_tokens / deployment.kv_block_tokens, reuse=serving.prefix_caching)
        if serving.speculation is not None or not self._batch.drafting:
            self._drafts = roofline
        self._make_room()
        self._is_planned = False

    @property
    def running(self) -> int:
        """The sequences of an iteration, those that are being read included."""
        return self._batch.size + len(self.reading)

    def uncached(self, sequence: Sequence) -> int:
        """Tokens of its prompt that would have to be computed here; always the last one."""
        return sequence.arrival.prompt_tokens - self._cached(sequence)

    def enqueue(self, sequence: Sequence) -> None:
        """Takes a sequence whose prompt is to be read here, at the moment it was advanced to."""
        sequence.queue_depth = len(self.waiting)
        self.load += 1
        self.waiting.append(sequence)
        self._start()

    def adopt(self, sequence: Sequence) -> None:
        """Takes a sequence whose prompt was read elsewhere and has come over a link, at the moment it was advanced to."""
        self.load += 1
        self.arriving.append(sequence)
        self._start()

    def let_go(self, sequence: Sequence) -> None:
        """Frees the blocks of a sequence that was read here and has moved on."""
        self.transferring -= 1
        self.kv.give_back(sequence.blocks, shared=sequence.shared)
        self._start()

    def next_s(self) -> float:
        """When something happens here unless something comes; infinity for never."""
        if not self._is_planned:
            self._plan()
        return self._next_s

    def advance(self, now_s: float) -> list[Happened]:
        """Goes on to `now_s`, and says what has happened there; nothing may have been due before."""
        if now_s > self.at_s or self.next_s() <= now_s:  # what is due may be nearer than a moment can say
            self._go_on(now_s)
        happened = self._due()
        self._make_room()
        self._start()
        return happened

    def _go_on(self, now_s: float) -> None:
        batch = self._batch
        if batch.size or self.reading:
            due_s, elapsed_s = self.next_s(), now_s - self.at_s
            before = self.iterations
            self.iterations = self._next_iteration if now_s >= due_s else before + elapsed_s / self._iteration_s
            iterations = self.iterations - before
            self.busy_s += elapsed_s
            self.collective_s += iterations * self._cost.talk_s * self.slowness
            self.collective_tokens += iterations * self._cost.tokens
            if batch.size:
                grown = iterations * batch.rate
                batch.context += grown
                self.kv.grow(grown / self.deployment.kv_block_tokens)
            self._is_planned = False
        self.at_s = now_s

    def _due(self) -> list[Happened]:
        happened = []
        for sequence in self._batch.ended(self.iterations):
            self.kv.grow((1 - sequence.arrival.output_tokens) / self.deployment.kv_block_tokens)
            happened.append(self._end(sequence))
        if self._read_until <= self.iterations + NEARLY:
            read, self.reading = self.reading, []
            self._read_until, self._chunk, self._chunk_context, self._read_context = math.inf, 0.0, 0.0, 0.0
            happened.extend(one for sequence in read if (one := self._read(sequence)) is not None)
            self._is_planned = False
        return happened

    def _read(self, sequence: Sequence) -> Happened | None:
        """The prompt of a sequence is read: it decodes here, or goes elsewhere, or is done."""
        if not sequence.preemptions:
            sequence.prefilled_s = sequence.first_token_s = self.at_s
        if sequence.way is not None and sequence.moved_s is None:
            self.load -= 1
            self.transferring += 1
            return Happened("prefilled", sequence)
        if not sequence.steps:
            return self._end(sequence)
        self._batch.join(sequence, self.iterations)
        return None

    def _end(self, sequence: Sequence) -> Happened:
        """A sequence's last token is out."""
        self.load -= 1
        self.kv.give_back(sequence.blocks, shared=sequence.shared)
        self.output_tokens += sequence.arrival.output_tokens
        if sequence.drafted is not None:
            self.verify_steps += sequence.drafted.verify_steps
            for place, accepted in enumerate(sequence.drafted.accepted_by_position):
                self.accepted[place] += accepted
        return Happened("ended", sequence)

    @property
    def _is_crowded(self) -> bool:
        return self.running + self.transferring > 1

    def _make_room(self) -> None:
        """Where answers have outgrown the cache, the sequence that came last starts again later, its prompt and answer to be read anew."""
        while self.kv.room < NEARLY and self._batch.size and self._is_crowded:
            last = self._batch.latest
            last.generated += (self.iterations - last.joined_iteration) * last.rate
            self._batch.leave(last, last.generated)
            self.kv.grow(-last.generated / self.deployment.kv_block_tokens)
            self.kv.give_back(last.blocks, shared=last.shared)
            last.preemptions += 1
            self.preemptions += 1
            self.waiting.appendleft(last)

    def _start(self) -> None:
        """Begins what there is room for: who was thrown out, then what has come over a link, then what waits to be read."""
        self._is_planned = False
        if not self.waiting and not self.arriving:
            return
        while self.arriving and not self._owes_room and self.running < self.serving.max_sequences:
            sequence = self.arriving[0]
            if not self._hold(sequence):
                return
            self.arriving.popleft()
            sequence.batch = self.running
            sequence.decode_queue_s = 0.0 if sequence.moved_s is None else self.at_s - sequence.moved_s
            sequence.first_token_s = self.at_s
            self._batch.join(sequence, self.iterations)
        if self.waiting and not self.reading:
            self._begin()

    @property
    def _owes_room(self) -> bool:
        """Whether a sequence that was thrown out waits to go on: it came before all others."""
        return bool(self.waiting) and self.waiting[0].preemptions > 0

    def _begin(self) -> None:
        """Reads the next prompt, and those behind it that fit in the same chunk."""
        total = context = pairs = lookup_s = 0.0
        while self.waiting and self.running < self.serving.max_sequences:
            sequence = self.waiting[0]
            cached = self._cached(sequence)
            uncached = sequence.arrival.prompt_tokens + sequence.generated - cached
            if (total and total + uncached > self.serving.chunk_tokens) or not self._hold(sequence):
                break
            self.reading.append(self.waiting.popleft())
            self._note_start(sequence, cached)
            lookup_s += self.serving.lookup_s_per_block * len(sequence.blocks)
            total += uncached
            context += cached + uncached / 2
            pairs += uncached * (cached + uncached / 2)
        if total:
            self._chunk = min(total, self.serving.chunk_tokens)
            self._chunk_context, self._read_context = pairs / total, context
            stages = self.serving.pipeline_parallel
            self._read_until = self.iterations + (total / self._chunk + stages - 1) / stages
            if lookup_s:
                self._plan()
                self._read_until += lookup_s / self._iteration_s
            self._is_planned = False

    def _note_start(self, sequence: Sequence, cached: int) -> None:
        if not sequence.preemptions:
            sequence.started_s, sequence.cached_tokens, sequence.batch = self.at_s, cached, self._batch.size
            self.prompt_tokens += sequence.arrival.prompt_tokens
            self.cached_tokens += cached

    def _hold(self, sequence: Sequence) -> bool:
        """Takes the blocks of a sequence that is about to begin, if they fit; where it is alone, whether or not."""
        kv, answers = self.kv, sequence.generated / self.deployment.kv_block_tokens
        alone = not self.running and not self.transferring
        if alone:
            kv.answers = 0.0  # but for rounding it is
        if not kv.take(sequence.blocks, answers=answers, spare=kv.capacity * SPARE, anyway=alone):
            return False
        sequence.shared = kv.reuse
        return True

    def _cached(self, sequence: Sequence) -> int:
        if not self.serving.prefix_caching:
            return 0
        held = self.kv.leading(sequence.blocks) * self.deployment.kv_block_tokens
        if held >= sequence.arrival.prompt_tokens:
            return self._but_the_last(sequence)
        return held

    def _but_the_last(self, sequence: Sequence) -> int:
        """A prompt that is there as a whole: its last token is computed anew. vLLM gives up the last block for that."""
        prompt, block = sequence.arrival.prompt_tokens, self.deployment.kv_block_tokens
        return (prompt - 1) // block * block if self.deployment.engine in ("vllm", "dynamo") else prompt - 1

    def _plan(self) -> None:
        """How long an iteration lasts as things are, and when something is next to be done."""
        batch, self._is_planned = self._batch, True
        if not batch.size and not self.reading:
            self._next_s = math.inf
            return
        draft_s = self._drafts.draft_s(batch.drafting) if batch.drafting else 0.0
        context = batch.context + self._read_context
        work = Work(batch.size, batch.computed, context, self._chunk, self._chunk_context, draft_s)
        self._cost = self.roofline.iteration(work)
        self._iteration_s = self._cost.seconds * self.slowness
        next_iteration = min(batch.next_end(), self._read_until)
        if batch.rate > 0:
            tokens = batch.rate + GROWN * batch.context
            if self._is_crowded:
                tokens = min(tokens, max(self.kv.room, 0.0) * self.deployment.kv_block_tokens)
            next_iteration = min(next_iteration, self.iterations + tokens / batch.rate)
        self._next_iteration = max(next_iteration, self.iterations)
        self._next_s = self.at_s + (self._next_iteration - self.iterations) * self._iteration_s
