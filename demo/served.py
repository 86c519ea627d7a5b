"""What is told of a replica's work: sequences that have ended as requests, and replicas looked at as readings."""

from __future__ import annotations

from demo.records import Reading, Request
from demo.replicas.hardware import HARDWARE
from demo.replicas.replica import Replica
from demo.replicas.sequence import Sequence

NS = 1_000_000_000
DETOKENIZE_S = 0.001


def served(sequence: Sequence, ended_s: float, began_ns: int) -> Request:
    """The record of a sequence whose last token was out at `ended_s`."""
    arrival, drafted, ids = sequence.arrival, sequence.drafted, sequence.ids
    shipped = sequence.moved_s is not None
    ttft_s = sequence.frontend_s + sequence.first_token_s - sequence.queued_s
    decode_s = ended_s - sequence.first_token_s
    drafting = sequence.at.speculative_tokens if drafted else None
    reason = "length" if arrival.output_tokens == arrival.max_tokens else "stop"
    return Request(
        started_ns=began_ns + round(sequence.queued_s * NS),
        trace_id=ids.trace_id,
        parent_span_id=ids.parent_span_id,
        request_key=ids.request_key,
        attempt=sequence.attempt,
        at=sequence.at,
        prefill_at=sequence.prefill_at,
        tenant=arrival.tenant,
        outcome=sequence.outcome,
        finish_reason=reason if sequence.outcome == "ok" else {"aborted": "abort"}.get(sequence.outcome, sequence.outcome),
        temperature=arrival.temperature,
        top_p=arrival.top_p,
        max_tokens=arrival.max_tokens,
        prompt_tokens=arrival.prompt_tokens,
        cached_tokens=sequence.cached_tokens,
        output_tokens=arrival.output_tokens,
        frontend_s=sequence.frontend_s,
        queue_s=sequence.started_s - sequence.queued_s,
        prefill_s=sequence.prefilled_s - sequence.started_s,
        kv_transfer_s=sequence.first_token_s - sequence.prefilled_s if shipped else None,
        kv_transfer_bytes=sequence.transfer_bytes if shipped else None,
        decode_queue_s=sequence.decode_queue_s,
        decode_s=decode_s,
        ttft_s=ttft_s,
        e2e_s=ttft_s + decode_s + DETOKENIZE_S,
        draft_tokens=drafted.verify_steps * drafting if drafted and drafting else None,
        accepted_tokens=drafted.accepted if drafted else None,
        verify_steps=drafted.verify_steps if drafted else None,
        accepted_by_position=drafted.accepted_by_position if drafted else None,
        decode_steps=sequence.steps,
        batch=sequence.batch,
        queue_depth=sequence.queue_depth,
        preemptions=sequence.preemptions,
    )


def reading(replica: Replica, at_ns: int) -> Reading:
    """What a replica shows at the moment it was advanced to."""
    deployment, roofline, kv = replica.deployment, replica.roofline, replica.kv
    memory = HARDWARE[deployment.hardware].memory_bytes * deployment.gpus
    return Reading(
        at_ns=at_ns,
        of=deployment,
        running=replica.running,
        waiting=len(replica.waiting) + len(replica.arriving),
        transferring=replica.transferring,
        kv_used_blocks=min(kv.used, kv.capacity),
        kv_cached_blocks=kv.idle,
        memory_used_bytes=memory * 0.95,
        memory_free_bytes=memory * 0.05,
        prompt_tokens=replica.prompt_tokens,
        cached_tokens=replica.cached_tokens,
        output_tokens=replica.output_tokens,
        draft_tokens=replica.verify_steps * (deployment.speculative_tokens or 0),
        accepted_tokens=sum(replica.accepted),
        verify_steps=replica.verify_steps,
        accepted_by_position=tuple(replica.accepted[: deployment.speculative_tokens or 0]),
        preemptions=replica.preemptions,
        evicted_blocks=kv.evicted,
        iterations=replica.iterations,
        seconds_busy=replica.busy_s,
        collective_s=replica.collective_s,
        collective_bytes=replica.collective_tokens * roofline.talk.token_bytes,
    )
